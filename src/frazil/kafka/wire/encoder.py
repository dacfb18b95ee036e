"""Writes the function that encodes one version of a message.

Neighbouring fields of a fixed size are one `pack`, and so is the length that follows them in older
versions. Record bytes are never copied: they become a chunk of their own.
"""

from __future__ import annotations

import struct

from frazil.errors import Malformed
from frazil.kafka.wire import primitives
from frazil.kafka.wire.function_text import FunctionText
from frazil.kafka.wire.layout import FIXED, Layout
from frazil.kafka.wire.primitives import STRING_BYTES_MAX, UVARINTS
from frazil.kafka.wire.schema import Column, Struct

HELPERS = ("UVARINTS", "bad_uuid", "no_field", "no_null", "too_long", "uvarint_bytes")


def write_encoder(layout: Layout) -> FunctionText:
    """Return the text of `encode(message)`, which returns chunks of bytes."""
    return _Writer(layout).write()


class _Writer:
    def __init__(self, layout: Layout) -> None:
        self._layout = layout
        self._source = FunctionText()
        self._formats: list[str] = []
        """Formats of the fixed fields that are not written yet."""
        self._values: list[str] = []

    def write(self) -> FunctionText:
        source, layout = self._source, self._layout
        for helper in HELPERS:
            source.use(helper, getattr(primitives, helper))
        source.use("Malformed", Malformed)
        source.use("StructError", struct.error)
        source.use("pack", struct.pack)
        with source.block("def encode(message):"):
            source.add("chunks = []", "out = []", "add = out.append")
            with source.block("try:"):
                self._struct(layout.message, "message", layout.name)
                self._flush()
            with source.block(
                "except (AttributeError, StructError, TypeError, ValueError) as error:"
            ):
                title = f"version {layout.version} of {layout.name}"
                source.add(f"raise Malformed(f'{title} cannot be written: {{error}}') from error")
            source.add("chunks.append(b''.join(out))", "return chunks")
        return source

    def _struct(self, kind: type[Struct], holder: str, path: str) -> None:
        layout = self._layout
        for column in layout.absent(kind):
            if not column.field.ignorable:
                with self._source.block(f"if {self._differs(column, f'{holder}.{column.name}')}:"):
                    self._source.add(
                        f"no_field('{layout.name}', {layout.version}, '{path}.{column.name}')"
                    )
        for column in layout.plain(kind):
            self._value(column, f"{holder}.{column.name}", f"{path}.{column.name}")
        if layout.is_flexible:
            self._tags(layout.tagged(kind), holder, path)

    def _differs(self, column: Column, value: str) -> str:
        """Return a condition: the value is not the default."""
        if column.default is None:
            kind = column.field.kind
            if self._layout.is_struct(kind) and not self._layout.is_nullable(column):
                # None stands for a tagged struct that is not sent, and so does an empty one.
                return f"{value} is not None and {value} != {self._kind(kind)}()"
            return f"{value} is not None"
        if column.default is Struct:
            return f"{value} != {self._kind(column.field.kind)}()"
        if column.default == []:
            return f"{value} is None or {value}"
        return f"{value} != {column.default!r}"

    def _kind(self, name: str) -> str:
        kind = self._layout.kind_of(name)
        return self._source.use(kind.__name__, kind)

    def _tags(self, known: list[Column], holder: str, path: str) -> None:
        """Write the tagged fields that differ from their defaults."""
        if not known:
            self._formats.append("x")
            return
        source = self._source
        self._flush()
        fields = source.variable("tagged")
        is_any = " or ".join(f"({self._differs(c, f'{holder}.{c.name}')})" for c in known)
        with source.block(f"if not ({is_any}):"):
            source.add("add(b'\\0')")
        with source.block("else:"):
            outer = source.variable("outer")
            source.add(f"{outer} = out", f"{fields} = []")
            for column in known:
                value = f"{holder}.{column.name}"
                with source.block(f"if {self._differs(column, value)}:"):
                    source.add("out = []", "add = out.append")
                    self._value(column, value, f"{path}.{column.name}")
                    self._flush()
                    source.add(f"{fields}.append(({column.field.tag}, b''.join(out)))")
            source.add(f"out = {outer}", "add = out.append")
            source.add(f"add(uvarint_bytes(len({fields})))")
            with source.block(f"for tag, value in {fields}:"):
                source.add("add(uvarint_bytes(tag))", "add(uvarint_bytes(len(value)))")
                source.add("add(value)")

    def _value(self, column: Column, value: str, path: str) -> None:
        is_nullable = self._layout.is_nullable(column)
        if column.is_array:
            self._array(column, value, path, is_nullable=is_nullable)
        elif is_nullable and self._layout.is_struct(column.field.kind):
            self._nullable_struct(column, value, path)
        else:
            self._single(column.field.kind, value, path, is_nullable=is_nullable)

    def _single(self, kind: str, value: str, path: str, *, is_nullable: bool) -> None:
        if kind == "uuid":
            with self._source.block(f"if len({value}) != 16:"):
                self._source.add(f"bad_uuid('{path}')")
        if kind in FIXED:
            self._fixed(FIXED[kind][0], value)
        elif kind in ("string", "bytes", "records"):
            self._sized(kind, value, path, is_nullable=is_nullable)
        else:
            self._struct(self._layout.kind_of(kind), self._local(value), path)

    def _nullable_struct(self, column: Column, value: str, path: str) -> None:
        """Write a byte that says whether there is a struct, and the struct."""
        part = self._local(value)
        self._flush()
        with self._source.block(f"if {part} is None:"):
            null = struct.pack("b", self._layout.null_struct(column))
            self._source.add(f"add({null!r})")
        with self._source.block("else:"):
            self._fixed("b", "1")
            self._struct(self._layout.kind_of(column.field.kind), part, path)
            self._flush()

    def _local(self, value: str) -> str:
        """Return a variable with a value: an element of an array is one already."""
        if "." not in value:
            return value
        part = self._source.variable("part")
        self._source.add(f"{part} = {value}")
        return part

    def _sized(self, kind: str, value: str, path: str, *, is_nullable: bool) -> None:
        """Write a text, bytes or records: a length, and so many bytes."""
        source, data = self._source, self._source.variable("data")
        char = "h" if kind == "string" else "i"
        source.add(f"{data} = {value}")
        if is_nullable:
            self._flush()
            with source.block(f"if {data} is None:"):
                self._null(char)
            with source.block("else:"):
                self._present(kind, char, data, path)
                self._flush()
        else:
            with source.block(f"if {data} is None:"):
                source.add(f"no_null('{path}')")
            self._present(kind, char, data, path)

    def _present(self, kind: str, char: str, data: str, path: str) -> None:
        source = self._source
        if kind == "string":
            source.add(f"{data} = {data}.encode()")
            with source.block(f"if len({data}) > {STRING_BYTES_MAX}:"):
                source.add(f"too_long('{path}', len({data}))")
        self._length(char, f"len({data})")
        self._flush()
        if kind == "records":
            source.add("chunks.append(b''.join(out))", f"chunks.append({data})", "out.clear()")
        else:
            source.add(f"add({data})")

    def _array(self, column: Column, value: str, path: str, *, is_nullable: bool) -> None:
        source, items = self._source, self._source.variable(column.name)
        source.add(f"{items} = {value}")
        if is_nullable:
            self._flush()
            with source.block(f"if {items} is None:"):
                self._null("i")
            with source.block("else:"):
                self._elements(column, items, path)
        else:
            with source.block(f"if {items} is None:"):
                source.add(f"no_null('{path}')")
            self._elements(column, items, path)

    def _elements(self, column: Column, items: str, path: str) -> None:
        source = self._source
        self._length("i", f"len({items})")
        self._flush()
        if column.element in FIXED and column.element != "uuid":
            char = FIXED[column.element][0]
            source.add(f"add(pack(f'>{{len({items})}}{char}', *{items}))")
            return
        item = source.variable("item")
        with source.block(f"for {item} in {items}:"):
            self._single(column.element, item, f"{path}[]", is_nullable=False)
            self._flush()

    def _null(self, char: str) -> None:
        null = bytes(1) if self._layout.is_flexible else struct.pack(f">{char}", -1)
        self._source.add(f"add({null!r})")

    def _length(self, char: str, length: str) -> None:
        """Write a length or a count. Compact ones are one more than they say, and 0 means null."""
        if not self._layout.is_flexible:
            self._fixed(char, length)
            return
        self._flush()
        count = self._source.variable("count")
        self._source.add(f"{count} = {length} + 1")
        self._source.add(
            f"add(UVARINTS[{count}] if {count} < {len(UVARINTS)} else uvarint_bytes({count}))"
        )

    def _fixed(self, char: str, value: str) -> None:
        self._formats.append(char)
        self._values.append(value)

    def _flush(self) -> None:
        """Write the fixed fields seen so far, in one call."""
        if not self._formats:
            return
        if not self._values:
            self._source.add(f"add({bytes(len(self._formats))!r})")
        else:
            name, _ = self._source.format("pack", self._formats)
            self._source.add(f"add({name}({', '.join(self._values)}))")
        self._formats.clear()
        self._values.clear()
