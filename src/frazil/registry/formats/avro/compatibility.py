"""What a reader's schema can read: the schema resolution of Avro's specification.

Where the specification leaves room, this decides as Avro's own `SchemaCompatibility` does: names
are compared without their namespaces, or by the reader's aliases; a union can be read if each of
its types can be.
"""

from __future__ import annotations

from frazil.registry.formats.avro.types import AvroType

PROMOTIONS = {
    "long": ("int",),
    "float": ("int", "long"),
    "double": ("int", "long", "float"),
    "bytes": ("string",),
    "string": ("bytes",),
}
"""Reader's type to the writer's types that it can read."""


def unreadable(reader: AvroType, writer: AvroType) -> list[str]:
    """Return why data that was written with one schema cannot be read with another."""
    return _Resolution().reasons(reader, writer, "")


class _Resolution:
    def __init__(self) -> None:
        self._known: dict[tuple[int, int], list[str]] = {}

    def reasons(self, reader: AvroType, writer: AvroType, path: str) -> list[str]:
        pair = id(reader), id(writer)
        if pair not in self._known:
            self._known[pair] = []  # a type that holds itself can be read if the rest can be
            self._known[pair] = self._compare(reader, writer, path)
        return self._known[pair]

    def _compare(self, reader: AvroType, writer: AvroType, path: str) -> list[str]:
        if writer.kind == "union" and reader.kind != "union":
            return [
                reason
                for branch in writer.branches
                for reason in self.reasons(reader, branch, path)
            ]
        if reader.kind == "union":
            branches = writer.branches if writer.kind == "union" else (writer,)
            return [
                _reason("MISSING_UNION_BRANCH", path, f"the reader's union lacks {branch.label}")
                for branch in branches
                if not any(not self.reasons(each, branch, path) for each in reader.branches)
            ]
        if reader.kind != writer.kind:
            if writer.kind in PROMOTIONS.get(reader.kind, ()):
                return []
            return [
                _reason(
                    "TYPE_MISMATCH", path, f"the reader's {reader.label} reads no {writer.label}"
                )
            ]
        if reader.kind in ("array", "map"):
            part = "items" if reader.kind == "array" else "values"
            return self.reasons(reader.inner, writer.inner, f"{path}/{part}")
        if not reader.name:
            return []
        return _name_reasons(reader, writer, path) or self._named(reader, writer, path)

    def _named(self, reader: AvroType, writer: AvroType, path: str) -> list[str]:
        if reader.kind == "fixed":
            if reader.size == writer.size:
                return []
            text = f"{reader.name} has {reader.size} bytes, not {writer.size}"
            return [_reason("FIXED_SIZE_MISMATCH", f"{path}/size", text)]
        if reader.kind == "enum":
            missing = sorted(set(writer.symbols) - set(reader.symbols))
            if not missing or reader.enum_default is not None:
                return []
            text = f"{reader.name} lacks {', '.join(missing)}, and has no default"
            return [_reason("MISSING_ENUM_SYMBOLS", f"{path}/symbols", text)]
        return self._record(reader, writer, path)

    def _record(self, reader: AvroType, writer: AvroType, path: str) -> list[str]:
        written = {field.name: field for field in writer.fields}
        found: list[str] = []
        for field in reader.fields:
            names = dict.fromkeys((field.name, *field.aliases))
            matches = [written[name] for name in names if name in written]
            inside = f"{path}/fields/{field.name}"
            if len(matches) > 1:
                text = f"{field.name} and its aliases are several fields of the writer"
                found.append(_reason("AMBIGUOUS_FIELD", inside, text))
            elif matches:
                found += self.reasons(field.type, matches[0].type, f"{inside}/type")
            elif not field.has_default:
                text = f"the reader's {field.name} has no default, and the writer has no such field"
                found.append(_reason("READER_FIELD_MISSING_DEFAULT_VALUE", inside, text))
        return found


def _name_reasons(reader: AvroType, writer: AvroType, path: str) -> list[str]:
    if reader.simple_name == writer.simple_name or writer.name in reader.aliases:
        return []
    return [_reason("NAME_MISMATCH", f"{path}/name", f"{writer.name} is not {reader.name}")]


def _reason(kind: str, path: str, text: str) -> str:
    return f"{kind} at {path or '/'}: {text}"
