"""Protocol Buffers: texts and protobuf's own form of them; what may follow what, rule by rule."""

from __future__ import annotations

import base64
import importlib
import pkgutil
import random
from collections.abc import Iterator

import pytest
from google.protobuf.descriptor_pb2 import DescriptorProto, FileDescriptorProto

from frazil.errors import Malformed
from frazil.registry.formats.parse import parse, unreadable
from frazil.registry.formats.parsed import NamedText
from frazil.registry.formats.protobuf.parser import ProtoParser, add_optional_oneofs
from frazil.registry.formats.protobuf.printer import print_proto

FILES_MIN = 30
SEED, DAMAGED = 7, 3000
HEAD = 'syntax = "proto3";'
ODD = """
// comments /* are no words */
syntax = 'proto2'; /* nor
these */ package a . b;
import public "google/protobuf/any.proto";
option java_package = "x" "y";
message message { optional int32 message = 1 [default = -0x1F, (a.b).c = { x: [1, 2] y < > }];
  required .a.b.message.E option = 2 [default = B]; enum E { option allow_alias = true; A = 0;
  B = 0; reserved -5 to -1, 9; }
  optional group Group = 3 { optional bytes bytes = 1 [default = "\\x41\\101\\"\\0"]; }
  oneof oneof { string string = 4; }; map < string , E > map = 5; extensions 100 to max;
  reserved 6, 7 to 8; reserved "x", "y"; }
extend message { repeated float f = 100 [packed = true]; }
service S { rpc M ( stream message ) returns ( .a.b.message ) { option deprecated = true; } }
"""


def message(fields: str, more: str = "") -> str:
    return f"{HEAD} message M {{ {fields} }} {more}"


RULES = [
    # (name, earlier, later, may the later follow, may the earlier follow)
    ("a field more", message(""), message("int32 a = 1;"), True, True),
    ("a name", message("int32 a = 1;"), message("int32 b = 1;"), True, True),
    ("alike numbers", message("int32 a = 1;"), message("bool a = 1;"), True, True),
    ("zigzag", message("int32 a = 1;"), message("sint32 a = 1;"), False, False),
    ("fixed", message("fixed32 a = 1;"), message("sfixed32 a = 1;"), True, True),
    ("widths", message("fixed32 a = 1;"), message("fixed64 a = 1;"), False, False),
    ("fractions", message("float a = 1;"), message("double a = 1;"), False, False),
    ("text and bytes", message("string a = 1;"), message("bytes a = 1;"), True, True),
    ("text and number", message("string a = 1;"), message("int32 a = 1;"), False, False),
    ("many texts", message("string a = 1;"), message("repeated string a = 1;"), True, True),
    ("many numbers", message("int32 a = 1;"), message("repeated int32 a = 1;"), False, False),
    ("optional", message("int32 a = 1;"), message("optional int32 a = 1;"), True, True),
    ("enum", message("int32 a = 1;"), message("E a = 1; enum E { X = 0; }"), True, True),
    ("a message less", message("", "message N {}"), message(""), False, True),
    ("one within less", message("message N {}"), message(""), False, True),
    ("a message", message("N a = 1;", "message N {}"), message("bytes a = 1;"), False, False),
    (
        "another message",
        message("N a = 1;", "message N {} message O {}"),
        message("O a = 1;", "message N {} message O {}"),
        False,
        False,
    ),
    ("a package", message(""), message("").replace(";", "; package p;", 1), False, False),
    ("a map", message("map<int32, int32> a = 1;"), message("map<int64, bool> a = 1;"), True, True),
    ("its values", message("map<int32, int32> a = 1;"), message("map<int32, string> a = 1;"), 0, 0),
    ("map or not", message("map<int32, int32> a = 1;"), message("bytes a = 1;"), False, False),
    ("into a oneof", message("int32 a = 1;"), message("oneof o { int32 a = 1; }"), True, True),
    (
        "two into a oneof",
        message("int32 a = 1; int32 b = 2;"),
        message("oneof o { int32 a = 1; int32 b = 2; }"),
        False,
        True,
    ),
    (
        "one more in a oneof",
        message("oneof o { int32 a = 1; }"),
        message("oneof o { int32 a = 1; int32 b = 2; }"),
        True,
        False,
    ),
    (
        "a oneof renamed",
        message("oneof o { int32 a = 1; int32 b = 2; }"),
        message("oneof p { int32 a = 1; int32 b = 2; }"),
        True,
        True,
    ),
    (
        "required",
        'syntax = "proto2"; message M {}',
        'syntax = "proto2"; message M { required int32 a = 1; }',
        False,
        False,
    ),
    (
        "lists of itself",
        message("M a = 1; int32 n = 2;"),
        message("M a = 1; string n = 2;"),
        False,
        False,
    ),
]
INVALID = [
    *(
        "message M {",
        'syntax = "proto4";',
        message("int32 a = 0;"),
        message("int32 a = 536870912;"),
    ),
    *(message("int32 a = 1; int32 a = 2;"), message("int32 a = 1; int32 b = 1;")),
    *(message("Nothing a = 1;"), message("int32 a = 19000;"), message("reserved 1; int32 a = 1;")),
    *(
        message("required int32 a = 1;"),
        message("map<float, int32> a = 1;"),
        "message M { int32 a; }",
    ),
    *(message("", "enum E {}"), message("", "enum E { A = 1; }"), 'import "none.proto";', "@"),
    *("AAAA", base64.b64encode(b"\x0a\x05a").decode(), message("", "message M {}"), '"' * 3),
    message("") + "message A {" * 100,
]


@pytest.mark.parametrize(
    ("earlier", "later", "forth", "back"), [rule[1:] for rule in RULES], ids=[r[0] for r in RULES]
)
def test_rules(earlier: str, later: str, forth: bool, back: bool) -> None:
    one, other = (parse("PROTOBUF", each, [], is_new=True) for each in (earlier, later))
    assert (not unreadable(other, one), not unreadable(one, other)) == (forth, back), (
        unreadable(other, one),
        unreadable(one, other),
    )


@pytest.mark.parametrize("text", INVALID)
def test_what_is_no_file(text: str) -> None:
    with pytest.raises(Malformed):
        parse("PROTOBUF", text, [], is_new=True)


def test_an_odd_file_keeps_its_meaning() -> None:
    """Keywords as names, options of all kinds, escapes, comments: one layout, which is stable."""
    schema = parse("PROTOBUF", ODD, [], is_new=True)
    again = parse("PROTOBUF", schema.text, [], is_new=True)
    assert (again.text, again.serialized()) == (schema.text, schema.serialized())
    file = FileDescriptorProto.FromString(base64.b64decode(schema.serialized()))
    first = file.message_type[0]
    assert first.field[0].default_value == "-31"
    assert first.nested_type[0].field[0].default_value == r"AA\042\000"
    assert [(each.start, each.end) for each in first.reserved_range] == [(6, 7), (7, 9)]
    assert "comments" not in schema.text


def test_real_files_survive_printing_and_parsing() -> None:
    """Descriptors that protoc made: printed and parsed, they are the same again."""
    count = 0
    for file in _descriptors():
        parsed = ProtoParser(print_proto(file)).parse()
        for each in parsed.message_type:
            add_optional_oneofs(each)
        assert _shape(parsed) == _shape(file), file.name
        if not file.dependency:
            text = base64.b64encode(file.SerializeToString()).decode()
            schema = parse("PROTOBUF", text, [], is_new=True)
            assert not unreadable(parse("PROTOBUF", schema.serialized(), [], is_new=True), schema)
        count += 1
    assert count >= FILES_MIN


def test_damaged_descriptors_are_refused_or_are_files() -> None:
    """What is taken can be printed, parsed, serialized and compared."""
    rand = random.Random(SEED)
    text = message("map<string, int32> m = 1; oneof o { E e = 2; }", "enum E { X = 0; }")
    whole = parse("PROTOBUF", text, [], is_new=True)
    data = base64.b64decode(whole.serialized())
    taken = 0
    for _ in range(DAMAGED):
        damaged = bytearray(data)
        for _ in range(rand.choice((1, 1, 2, 4))):
            damaged[rand.randrange(len(damaged))] = rand.randrange(256)
        try:
            schema = parse("PROTOBUF", base64.b64encode(damaged).decode(), [], is_new=True)
        except Malformed:
            continue
        taken += 1
        unreadable(schema, whole)
        unreadable(whole, schema)
        assert parse("PROTOBUF", schema.text, [], is_new=True).serialized() == schema.serialized()
    assert DAMAGED // 20 < taken < DAMAGED


def test_imports_by_reference_and_the_known_ones() -> None:
    item = NamedText("shop/item.proto", f"{HEAD} package shop; message Item {{ int32 n = 1; }}")
    cart = (
        f'{HEAD} package shop; import "shop/item.proto"; import "google/protobuf/timestamp.proto";'
        'import "google/type/money.proto"; message Cart { Item i = 1; google.type.Money m = 2;'
        "google.protobuf.Timestamp t = 3; }"
    )
    one = parse("PROTOBUF", cart, [item], is_new=True)
    other_item = NamedText(item.name, item.text.replace("int32", "string"))
    other = parse("PROTOBUF", cart, [other_item], is_new=True)
    assert unreadable(other, one) == [
        "FIELD_SCALAR_KIND_CHANGED at #/Cart/1/1: int32 became string"
    ]


def _descriptors() -> Iterator[FileDescriptorProto]:
    for name in ("google.protobuf", "google.rpc", "google.type", "opentelemetry.proto"):
        package = importlib.import_module(name)
        for module in pkgutil.walk_packages(package.__path__, f"{package.__name__}."):
            if module.name.endswith("_pb2") and "unittest" not in module.name:
                found = importlib.import_module(module.name).DESCRIPTOR
                file = FileDescriptorProto.FromString(found.serialized_pb)
                if file.syntax in ("", "proto2", "proto3") and file.name != DESCRIPTOR:
                    yield file


DESCRIPTOR = DescriptorProto.DESCRIPTOR.file.name
"""It describes itself, with options that no one else may use."""


def _shape(file: FileDescriptorProto) -> list[str]:
    """Return what is in a file by name, type and number, in any order."""
    lines = [file.package, file.syntax, *file.dependency]

    def walk(each: DescriptorProto, path: str) -> None:
        oneofs = [oneof.name for oneof in each.oneof_decl]
        for field in each.field:
            oneof = oneofs[field.oneof_index] if field.HasField("oneof_index") else ""
            name = field.type_name.rpartition(".")[2]
            kind = "" if name else str(field.type)
            lines.append(
                f"{path}.{field.name} {field.number} {field.label} {kind}{name} {oneof} "
                f"{field.proto3_optional} {field.default_value} {field.options.deprecated}"
            )
        for span in each.reserved_range:
            lines.append(f"{path} {span.start} {span.end}")
        for enum in each.enum_type:
            lines.extend(f"{path}.{enum.name}.{value.name} {value.number}" for value in enum.value)
        for nested in each.nested_type:
            walk(nested, f"{path}.{nested.name}")

    for each in file.message_type:
        walk(each, each.name)
    for service in file.service:
        lines += [
            f"{service.name}.{method.name} {method.client_streaming} {method.server_streaming}"
            for method in service.method
        ]
    return sorted(lines)
