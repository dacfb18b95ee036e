"""Writes the function that reads one version of a message.

The function is straight: no call per field, no table at run time. Neighbouring fields of a fixed
size are one `unpack_from`, and so is the length that follows them. Arrays are loops inside loops.

Input is hostile. `unpack_from` and indexing fail beyond the end, lengths and counts are compared
with the bytes that are left before anything is made, and a message has a maximum of elements.
"""

from __future__ import annotations

import struct

from frazil.errors import Malformed
from frazil.kafka.wire import primitives
from frazil.kafka.wire.function_text import FunctionText
from frazil.kafka.wire.layout import FIXED, Layout
from frazil.kafka.wire.primitives import ELEMENTS_MAX, STRING_BYTES_MAX
from frazil.kafka.wire.schema import Column, Struct, columns

HELPERS = ("bad_count", "bad_length", "bad_marker", "bad_tag", "skip_tags", "uvarint")


def write_decoder(layout: Layout) -> FunctionText:
    """Return the text of `decode(view, at, end, is_whole)`, which reads from a memoryview."""
    return _Writer(layout).write()


class _Writer:
    def __init__(self, layout: Layout) -> None:
        self._layout = layout
        self._source = FunctionText()
        self._formats: list[str] = []
        """Formats of the fixed fields that are not read yet."""
        self._variables: list[str] = []

    def write(self) -> FunctionText:
        source, layout = self._source, self._layout
        for helper in HELPERS:
            source.use(helper, getattr(primitives, helper))
        source.use("Malformed", Malformed)
        source.use("StructError", struct.error)
        title = f"{layout.name} version {layout.version}"
        with source.block("def decode(view, at, end, is_whole):"):
            source.add(f"left = {ELEMENTS_MAX}")
            with source.block("try:"):
                message = self._struct(layout.message, layout.name)
                self._flush()
            with source.block("except Malformed as error:"):
                source.add(f"raise Malformed(f'{title}: {{error}}') from None")
            with source.block("except (IndexError, StructError):"):
                source.add(f"raise Malformed('{title}: the bytes end too early') from None")
            with source.block("except UnicodeDecodeError as error:"):
                source.add(f"raise Malformed(f'{title}: a text is not UTF-8: {{error}}') from None")
            with source.block("if is_whole and at != end:"):
                source.add(f"raise Malformed(f'{title}: {{end - at}} bytes too many')")
            source.add(f"return {message}")
        return source

    def _struct(self, kind: type[Struct], path: str) -> str:
        """Read a struct, and return an expression that makes it."""
        layout = self._layout
        values = {
            column.name: self._value(column, f"{path}.{column.name}")
            for column in layout.plain(kind)
        }
        if layout.is_flexible:
            values |= self._tags(layout.tagged(kind), path)
        name = self._source.use(kind.__name__, kind)
        needed = list(columns(kind))
        while needed and needed[-1].name not in values:
            needed.pop()  # the class knows the defaults of the last ones
        arguments = [values.get(column.name) or self._default(column) for column in needed]
        return f"{name}({', '.join(arguments)})"

    def _default(self, column: Column) -> str:
        if column.default is Struct:
            kind = self._layout.kind_of(column.field.kind)
            return f"{self._source.use(kind.__name__, kind)}()"
        return repr(column.default)

    def _tags(self, known: list[Column], path: str) -> dict[str, str]:
        """Read the section of tagged fields at the end of a struct."""
        source = self._source
        count = source.variable("tags")
        self._fixed("B", count)
        values = {column.name: source.variable(column.name) for column in known}
        self._flush()
        for column in known:
            source.add(f"{values[column.name]} = {self._default(column)}")
        with source.block(f"if {count}:"):
            if not known:
                source.add("at, left = skip_tags(view, at - 1, end, left)")
                return values
            source.add(f"{count}, at = uvarint(view, at - 1)")
            with source.block(f"if {count} > left:"):
                source.add(f"bad_count('tagged fields of {path}', {count})")
            source.add(f"left -= {count}")
            with source.block(f"for _ in range({count}):"):
                source.add("tag, at = uvarint(view, at)", "size, at = uvarint(view, at)")
                stop = source.variable("stop")
                source.add(f"{stop} = at + size")
                with source.block(f"if {stop} > end:"):
                    source.add(f"bad_tag('{path}')")
                word = "if"
                for column in known:
                    with source.block(f"{word} tag == {column.field.tag}:"):
                        value = self._value(column, f"{path}.{column.name}")
                        self._flush()
                        source.add(f"{values[column.name]} = {value}")
                    word = "elif"
                with source.block("else:"):
                    source.add(f"at = {stop}")
                with source.block(f"if at != {stop}:"):
                    source.add(f"bad_tag('{path}')")
        return values

    def _value(self, column: Column, path: str) -> str:
        """Read a field, and return an expression with its value. The expression may use variables
        that the next `_flush` reads."""
        is_nullable = self._layout.is_nullable(column)
        if column.is_array:
            return self._array(column, path, is_nullable=is_nullable)
        if is_nullable and self._layout.is_struct(column.field.kind):
            return self._nullable_struct(column, path)
        return self._single(column.field.kind, column.name, path, is_nullable=is_nullable)

    def _single(self, kind: str, name: str, path: str, *, is_nullable: bool) -> str:
        if kind in FIXED:
            value = self._source.variable(name)
            self._fixed(FIXED[kind][0], value)
            return value
        if kind in ("string", "bytes", "records"):
            return self._sized(kind, name, path, is_nullable=is_nullable)
        return self._struct(self._layout.kind_of(kind), path)

    def _nullable_struct(self, column: Column, path: str) -> str:
        """Read a byte that says whether there is a struct, and the struct."""
        source, value = self._source, self._source.variable(column.name)
        marker = source.variable("marker")
        self._fixed("b", marker)
        self._flush()
        with source.block(f"if {marker} == 1:"):
            made = self._struct(self._layout.kind_of(column.field.kind), path)
            self._flush()
            source.add(f"{value} = {made}")
        with source.block(f"elif {marker} == {self._layout.null_struct(column)}:"):
            source.add(f"{value} = None")
        with source.block("else:"):
            source.add(f"bad_marker('{path}', {marker})")
        return value

    def _sized(self, kind: str, name: str, path: str, *, is_nullable: bool) -> str:
        """Read a text, bytes or records: a length, and so many bytes."""
        source, value = self._source, self._source.variable(name)
        length = self._length("h" if kind == "string" else "i", f"{name}_length")
        taken = {
            "string": "str(view[at:stop], 'utf-8')",
            "bytes": "bytes(view[at:stop])",
            "records": "view[at:stop]",
        }[kind]
        if self._layout.is_flexible:
            null, shift = "0", " - 1"
            last = f" <= {STRING_BYTES_MAX + 1}" if kind == "string" else ""
            is_wrong = f"not 0 < {length}{last} or stop > end"
        else:
            null, shift = "-1", ""
            is_wrong = f"{length} < 0 or stop > end"

        def take() -> None:
            source.add(f"stop = at + {length}{shift}")
            with source.block(f"if {is_wrong}:"):
                source.add(f"bad_length('{path}', {length}{shift})")
            source.add(f"{value} = {taken}", "at = stop")

        if is_nullable:
            with source.block(f"if {length} == {null}:"):
                source.add(f"{value} = None")
            with source.block("else:"):
                take()
        else:
            take()
        return value

    def _array(self, column: Column, path: str, *, is_nullable: bool) -> str:
        source, value = self._source, self._source.variable(column.name)
        count = self._length("i", f"{column.name}_count")
        null = "0" if self._layout.is_flexible else "-1"

        def take() -> None:
            if self._layout.is_flexible:
                source.add(f"{count} -= 1")
            least = self._layout.element_size_min(column)
            is_wrong = f"{count} < 0 or {count} > left or {count} * {least} > end - at"
            with source.block(f"if {is_wrong}:"):
                source.add(f"bad_count('{path}', {count})")
            source.add(f"left -= {count}")
            self._elements(column, path, value, count)

        if is_nullable:
            with source.block(f"if {count} == {null}:"):
                source.add(f"{value} = None")
            with source.block("else:"):
                take()
        else:
            take()
        return value

    def _elements(self, column: Column, path: str, value: str, count: str) -> None:
        source = self._source
        if column.element in FIXED and column.element != "uuid":
            char, size = FIXED[column.element]
            source.use("unpack_from", struct.unpack_from)
            source.add(
                f"{value} = list(unpack_from(f'>{{{count}}}{char}', view, at))",
                f"at += {count} * {size}",
            )
            return
        source.add(f"{value} = []")
        with source.block(f"for _ in range({count}):"):
            made = self._single(column.element, column.name, f"{path}[]", is_nullable=False)
            self._flush()
            source.add(f"{value}.append({made})")

    def _length(self, char: str, name: str) -> str:
        """Read a length or a count. Compact ones are one more than they say, and 0 means null."""
        length = self._source.variable(name)
        if not self._layout.is_flexible:
            self._fixed(char, length)
            self._flush()
            return length
        self._fixed("B", length)
        self._flush()
        with self._source.block(f"if {length} > 127:"):
            self._source.add(f"{length}, at = uvarint(view, at - 1)")
        return length

    def _fixed(self, char: str, variable: str) -> None:
        self._formats.append(char)
        self._variables.append(variable)

    def _flush(self) -> None:
        """Read the fixed fields seen so far, in one call."""
        if not self._formats:
            return
        if self._formats == ["B"]:
            self._source.add(f"{self._variables[0]} = view[at]", "at += 1")
        else:
            name, size = self._source.format("unpack_from", self._formats)
            targets = ", ".join(self._variables) + ("," if len(self._variables) == 1 else "")
            self._source.add(f"{targets} = {name}(view, at)", f"at += {size}")
        self._formats.clear()
        self._variables.clear()
