"""ProtoParser: the text of a .proto file as a FileDescriptorProto, protobuf's own form of a file.

Options that this does not know are kept in the text only. What the grammar leaves open, such as
numbers used twice, protobuf itself checks afterwards.
"""

from __future__ import annotations

from typing import TypeVar

from google.protobuf.descriptor_pb2 import (
    DescriptorProto,
    EnumDescriptorProto,
    FieldDescriptorProto,
    FileDescriptorProto,
    OneofDescriptorProto,
)

from frazil.errors import Malformed
from frazil.registry.formats.protobuf.tokens import END, Tokens, integer_of, is_name, text_value

Type = FieldDescriptorProto.Type
SCALARS = {
    name.removeprefix("TYPE_").lower(): number
    for name, number in Type.items()
    if name not in ("TYPE_GROUP", "TYPE_MESSAGE", "TYPE_ENUM")
}
INTEGERS = frozenset(
    number
    for name, number in SCALARS.items()
    if name.endswith(("int32", "int64", "fixed32", "fixed64"))
)
LABELS = {
    "optional": FieldDescriptorProto.LABEL_OPTIONAL,
    "required": FieldDescriptorProto.LABEL_REQUIRED,
    "repeated": FieldDescriptorProto.LABEL_REPEATED,
}
NUMBER_MAX, ENUM_MAX = 2**29 - 1, 2**31 - 1
DEPTH_MAX = 30
"""Messages in messages: protobuf allows 32."""
KEYS = frozenset(SCALARS) - {"double", "float", "bytes"}

_Ranged = TypeVar("_Ranged", DescriptorProto, EnumDescriptorProto)
Options = dict[str, str]
"""Simple options by name, as their words stand; others are left out."""


class ProtoParser:
    """Parses one file."""

    def __init__(self, text: str) -> None:
        self._tokens = Tokens(text)
        self.file = FileDescriptorProto()

    @property
    def _is_proto3(self) -> bool:
        return self.file.syntax == "proto3"

    def parse(self) -> FileDescriptorProto:
        """Return the file. `Malformed` says what is wrong."""
        tokens = self._tokens
        if tokens.accept("syntax"):
            tokens.expect("=")
            syntax = tokens.text()
            if syntax not in ("proto2", "proto3"):
                raise Malformed(f"syntax {syntax[:40]} is not known; write proto2 or proto3")
            if syntax == "proto3":  # descriptors of proto2 have none
                self.file.syntax = syntax
            tokens.expect(";")
        elif tokens.peek() == "edition":
            raise Malformed('editions are not built; write syntax = "proto3" or "proto2"')
        while tokens.peek() != END:
            self._statement()
        return self.file

    def _statement(self) -> None:
        tokens = self._tokens
        word = tokens.take()
        match word:
            case ";":
                return
            case "import":
                if tokens.accept("public"):
                    self.file.public_dependency.append(len(self.file.dependency))
                elif tokens.accept("weak"):
                    self.file.weak_dependency.append(len(self.file.dependency))
                self.file.dependency.append(tokens.text())
                tokens.expect(";")
            case "package":
                self.file.package = tokens.full_name()
                tokens.expect(";")
            case "option":
                self._option()
            case "message":
                self._message(self.file.message_type.add(), 1)
            case "enum":
                self._enum(self.file.enum_type.add())
            case "extend":
                self._extend(self.file.extension, self.file.message_type)
            case "service":
                self._service()
            case _:
                raise Malformed(f"{word[:40]!r} begins no statement of a .proto file")

    def _message(self, message: DescriptorProto, depth: int) -> None:
        message.name = self._tokens.name()
        self._body(message, depth)

    def _body(self, message: DescriptorProto, depth: int) -> None:
        if depth > DEPTH_MAX:
            raise Malformed(f"messages are nested more than {DEPTH_MAX} levels deep")
        tokens = self._tokens
        tokens.expect("{")
        while not tokens.accept("}"):
            word = tokens.peek()
            follows_type = tokens.peek(1) not in ("=", ".") and is_name(tokens.peek(1))
            if word == ";":
                tokens.take()
            elif word == "message" and tokens.peek(2) == "{":
                tokens.take()
                self._message(message.nested_type.add(), depth + 1)
            elif word == "enum" and tokens.peek(2) == "{":
                tokens.take()
                self._enum(message.enum_type.add())
            elif word == "extend" and (follows_type or tokens.peek(1) == "."):
                tokens.take()
                self._extend(message.extension, message.nested_type)
            elif word == "option" and tokens.peek(2) in ("=", ")", "."):
                tokens.take()
                value = self._option()
                if value is not None and value[0] == "message_set_wire_format":
                    raise Malformed("message_set_wire_format is not supported")
            elif word == "option" and tokens.peek(1) == "(":
                tokens.take()
                self._option()
            elif word == "oneof" and tokens.peek(2) == "{":
                tokens.take()
                self._oneof(message, depth)
            elif word == "reserved":
                tokens.take()
                self._reserved(message, NUMBER_MAX)
            elif word == "extensions":
                tokens.take()
                self._extensions(message)
            elif word == "map" and tokens.peek(1) == "<":
                self._map(message)
            else:
                self._field(message.field.add(), message.nested_type, message, depth=depth)

    def _field(
        self,
        field: FieldDescriptorProto,
        nested: object,
        message: DescriptorProto | None,
        *,
        depth: int,
        oneof: int | None = None,
    ) -> None:
        tokens = self._tokens
        label = tokens.peek()
        has_label = label in LABELS and tokens.peek(1) != "="
        field.label = FieldDescriptorProto.LABEL_OPTIONAL
        if has_label:
            if oneof is not None:
                raise Malformed("a field of a oneof has no label")
            field.label = LABELS[tokens.take()]
        elif oneof is None and not self._is_proto3:
            raise Malformed(
                f"a field of proto2 begins with optional, required or repeated, not {label[:40]!r}"
            )
        if tokens.peek() == "group" and tokens.peek(2) == "=":
            self._group(field, nested, depth)
        else:
            self._typed(field)
            field.name = tokens.name()
            tokens.expect("=")
            field.number = self._number()
            self._field_options(field, self._bracketed())
            tokens.expect(";")
        if oneof is not None:
            field.oneof_index = oneof
        elif has_label and label == "optional" and self._is_proto3 and message is not None:
            field.proto3_optional = True

    def _typed(self, field: FieldDescriptorProto) -> None:
        name = self._tokens.full_name()
        if name in SCALARS:
            field.type = SCALARS[name]
        else:
            field.type_name = name  # a message or an enum: `resolve_names` finds out

    def _group(self, field: FieldDescriptorProto, nested: object, depth: int) -> None:
        tokens = self._tokens
        tokens.expect("group")
        name = tokens.name()
        if self._is_proto3:
            raise Malformed(f"the group {name} is of proto2; write a message")
        tokens.expect("=")
        field.name, field.number = name.lower(), self._number()
        field.type, field.type_name = FieldDescriptorProto.TYPE_GROUP, name
        self._bracketed()
        group = nested.add()  # type: ignore[attr-defined]
        group.name = name
        self._body(group, depth + 1)

    def _map(self, message: DescriptorProto) -> None:
        tokens = self._tokens
        tokens.expect("map")
        tokens.expect("<")
        key = tokens.name()
        if key not in KEYS:
            raise Malformed(f"{key} is no type of a map's key")
        tokens.expect(",")
        value = FieldDescriptorProto(
            name="value", number=2, label=FieldDescriptorProto.LABEL_OPTIONAL
        )
        self._typed(value)
        tokens.expect(">")
        name = tokens.name()
        tokens.expect("=")
        entry = message.nested_type.add()
        entry.name = "".join(part[:1].upper() + part[1:] for part in name.split("_")) + "Entry"
        entry.options.map_entry = True
        entry.field.add(
            name="key",
            number=1,
            label=FieldDescriptorProto.LABEL_OPTIONAL,
            type=SCALARS[key],
        )
        entry.field.append(value)
        field = message.field.add(
            name=name,
            label=FieldDescriptorProto.LABEL_REPEATED,
            number=self._number(),
            type=FieldDescriptorProto.TYPE_MESSAGE,
            type_name=entry.name,
        )
        self._field_options(field, self._bracketed())
        tokens.expect(";")

    def _oneof(self, message: DescriptorProto, depth: int) -> None:
        tokens = self._tokens
        index = len(message.oneof_decl)
        message.oneof_decl.add().name = tokens.name()
        tokens.expect("{")
        while not tokens.accept("}"):
            if tokens.accept(";"):
                continue
            if tokens.peek() == "option" and tokens.peek(1) != "=":
                tokens.take()
                self._option()
                continue
            field = message.field.add()
            self._field(field, message.nested_type, message, depth=depth, oneof=index)

    def _enum(self, enum: EnumDescriptorProto) -> None:
        tokens = self._tokens
        enum.name = tokens.name()
        tokens.expect("{")
        while not tokens.accept("}"):
            if tokens.accept(";"):
                continue
            if tokens.peek() == "option" and tokens.peek(1) != "=":
                tokens.take()
                option = self._option()
                if option == ("allow_alias", "true"):
                    enum.options.allow_alias = True
                continue
            if tokens.peek() == "reserved" and tokens.peek(1) != "=":
                tokens.take()
                self._reserved(enum, ENUM_MAX)
                continue
            name = tokens.name()
            tokens.expect("=")
            number = tokens.integer()
            if not -ENUM_MAX - 1 <= number <= ENUM_MAX:
                raise Malformed(f"{name} is {number}, which does not fit into 32 bits")
            enum.value.add(name=name, number=number)
            self._bracketed()
            tokens.expect(";")

    def _reserved(self, where: _Ranged, largest: int) -> None:
        tokens = self._tokens
        if tokens.peek()[:1] in ("'", '"'):
            where.reserved_name.append(tokens.text())
            while tokens.accept(","):
                where.reserved_name.append(tokens.text())
            tokens.expect(";")
            return
        while True:
            begin, end = self._range(largest)
            # The end of a range is exclusive for fields, inclusive for enums.
            is_enum = isinstance(where, EnumDescriptorProto)
            where.reserved_range.add(start=begin, end=end if is_enum else end + 1)
            if not tokens.accept(","):
                break
        tokens.expect(";")

    def _extensions(self, message: DescriptorProto) -> None:
        while True:
            begin, end = self._range(NUMBER_MAX)
            message.extension_range.add(start=begin, end=end + 1)
            if not self._tokens.accept(","):
                break
        self._bracketed()
        self._tokens.expect(";")

    def _range(self, largest: int) -> tuple[int, int]:
        tokens = self._tokens
        begin = end = tokens.integer()
        if tokens.accept("to"):
            end = largest if tokens.accept("max") else tokens.integer()
        if not -ENUM_MAX - 1 <= begin <= end <= largest:
            raise Malformed(f"{begin} to {end} is no range up to {largest}")
        return begin, end

    def _extend(self, extensions: object, nested: object) -> None:
        tokens = self._tokens
        extendee = tokens.full_name()
        tokens.expect("{")
        while not tokens.accept("}"):
            if tokens.accept(";"):
                continue
            field = extensions.add()  # type: ignore[attr-defined]
            field.extendee = extendee
            self._field(field, nested, None, depth=1)

    def _service(self) -> None:
        tokens = self._tokens
        service = self.file.service.add()
        service.name = tokens.name()
        tokens.expect("{")
        while not tokens.accept("}"):
            if tokens.accept(";"):
                continue
            if tokens.accept("option"):
                self._option()
                continue
            tokens.expect("rpc")
            method = service.method.add()
            method.name = tokens.name()
            method.input_type, method.client_streaming = self._message_of_method()
            tokens.expect("returns")
            method.output_type, method.server_streaming = self._message_of_method()
            if tokens.accept("{"):
                while not tokens.accept("}"):
                    if not tokens.accept(";"):
                        tokens.expect("option")
                        self._option()
            else:
                tokens.expect(";")

    def _message_of_method(self) -> tuple[str, bool]:
        tokens = self._tokens
        tokens.expect("(")
        is_stream = tokens.peek() == "stream" and tokens.peek(1) not in (")", ".")
        if is_stream:
            tokens.take()
        name = tokens.full_name()
        tokens.expect(")")
        return name, is_stream

    def _number(self) -> int:
        number = self._tokens.integer()
        if not 0 < number <= NUMBER_MAX:
            raise Malformed(f"{number} is no number of a field; use 1 to {NUMBER_MAX}")
        return number

    def _option(self) -> tuple[str, str] | None:
        """Take an option up to its semicolon. Returns its name and value if both are simple."""
        name, value = self._assignment()
        self._tokens.expect(";")
        return None if value is None else (name, value)

    def _bracketed(self) -> Options:
        """Take options in brackets, if there are any."""
        tokens, found = self._tokens, Options()
        if not tokens.accept("["):
            return found
        while True:
            name, value = self._assignment()
            if value is not None:
                found[name] = value
            if not tokens.accept(","):
                break
        tokens.expect("]")
        return found

    def _assignment(self) -> tuple[str, str | None]:
        tokens = self._tokens
        name = self._option_part()
        while tokens.accept("."):
            name = f"{name}.{self._option_part()}"
        tokens.expect("=")
        if tokens.peek() == "{":
            self._skip_block()
            return name, None
        sign = "-" if tokens.accept("-") else ""
        word = tokens.take()
        while word[:1] in ("'", '"') and tokens.peek()[:1] in ("'", '"') and tokens.peek():
            tokens.take()  # texts in a row
        while tokens.accept("."):
            word = f"{word}.{tokens.name()}"
        return name, sign + word

    def _option_part(self) -> str:
        tokens = self._tokens
        if not tokens.accept("("):
            return tokens.name()
        name = tokens.full_name()
        tokens.expect(")")
        return f"({name})"

    def _skip_block(self) -> None:
        depth = 0
        while True:
            word = self._tokens.take()
            depth += (word == "{") - (word == "}")
            if depth == 0:
                return

    def _field_options(self, field: FieldDescriptorProto, options: Options) -> None:
        if "default" in options:
            if self._is_proto3:
                raise Malformed(f"the field {field.name} has a default, which proto3 has not")
            word = options["default"]
            is_text = word[:1] in ("'", '"')
            if is_text:
                word = _default_text(field, word)
            elif field.type in INTEGERS:
                word = str(integer_of(word))
            field.default_value = word
        if "json_name" in options:
            field.json_name = text_value(options["json_name"]).decode("utf-8", "replace")
        for name in ("packed", "deprecated", "lazy"):
            if name in options:
                setattr(field.options, name, options[name] == "true")


def _default_text(field: FieldDescriptorProto, word: str) -> str:
    value = text_value(word)
    if field.type != FieldDescriptorProto.TYPE_BYTES:
        return value.decode("utf-8", "replace")
    # Descriptors keep bytes with C's escapes.
    plain = {byte: chr(byte) for byte in range(32, 127) if byte not in b"\\\"'"}
    return "".join(plain.get(byte, f"\\{byte:03o}") for byte in value)


def add_optional_oneofs(message: DescriptorProto) -> None:
    """Give each optional field of proto3 the oneof that descriptors have for it."""
    names = {oneof.name for oneof in message.oneof_decl} | {field.name for field in message.field}
    for field in message.field:
        if field.proto3_optional:
            name = f"_{field.name}"
            while name in names:
                name = f"X{name}"
            names.add(name)
            field.oneof_index = len(message.oneof_decl)
            message.oneof_decl.append(OneofDescriptorProto(name=name))
    for nested in message.nested_type:
        add_optional_oneofs(nested)
