"""ProtobufSchema: a parsed file, with the files that it imports."""

from __future__ import annotations

import base64
import importlib
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from google.protobuf.descriptor_pb2 import FileDescriptorProto
from google.protobuf.descriptor_pool import DescriptorPool
from google.protobuf.message import DecodeError

from frazil.errors import Malformed
from frazil.registry.formats.parsed import NamedText, ParsedSchema
from frazil.registry.formats.protobuf.checks import check_numbers
from frazil.registry.formats.protobuf.compatibility import ProtoTypes, unreadable_protobuf
from frazil.registry.formats.protobuf.names import resolve_names, types_of
from frazil.registry.formats.protobuf.parser import ProtoParser, add_optional_oneofs
from frazil.registry.formats.protobuf.printer import print_proto
from frazil.registry.formats.protobuf.tokens import laid_out

KNOWN = re.compile(r"google/(protobuf|type)/([a-z_]+)\.proto", re.ASCII)
"""Files that every registry knows."""
BASE64 = re.compile(r"[A-Za-z0-9+/]+={0,2}", re.ASCII)
FILE_NAME = "default.proto"
"""Of a file that no one imports."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ProtobufSchema:
    """A file, and all types that it can use."""

    text: str
    parsed: ProtoTypes

    @property
    def normalized(self) -> str:
        return self.text

    def serialized(self) -> str:
        return base64.b64encode(self.parsed.file.SerializeToString(deterministic=True)).decode()

    def unreadable(self, earlier: ParsedSchema) -> Sequence[str]:
        assert isinstance(earlier, ProtobufSchema)
        return unreadable_protobuf(earlier.parsed, self.parsed)


def parse_protobuf_schema(text: str, references: Sequence[NamedText]) -> ProtobufSchema:
    """Parse a file, as text or as the bytes of a FileDescriptorProto in base64, with those that it
    imports. `Malformed` says what is wrong."""
    files: dict[str, FileDescriptorProto] = {}
    for reference in references:
        imported, _ = _parsed(reference.text)
        _add(imported, reference.name, files)
    file, layout = _parsed(text)
    parsed = _add(file, FILE_NAME, files)
    return ProtobufSchema(text=layout, parsed=parsed)


def _parsed(text: str) -> tuple[FileDescriptorProto, str]:
    """Return a file, whose names may be unresolved, and its text in one layout."""
    if BASE64.fullmatch(text.strip()):
        text = _decoded(text)  # which is parsed again: what is stored is what counts
    file = ProtoParser(text).parse()
    for message in file.message_type:
        add_optional_oneofs(message)
    return file, laid_out(text)


def _decoded(text: str) -> str:
    file = FileDescriptorProto()
    try:
        file.ParseFromString(base64.b64decode(text))
        return print_proto(file)
    # A text that is not UTF-8 comes as bytes.
    except (ValueError, TypeError, DecodeError, LookupError, StopIteration) as error:
        raise Malformed(
            f"it is neither a .proto file nor a FileDescriptorProto in base64: {error}"
        ) from None


def _add(file: FileDescriptorProto, name: str, files: dict[str, FileDescriptorProto]) -> ProtoTypes:
    """Add a file to those that others may import. Protobuf checks it."""
    file.name = name
    for imported in file.dependency:
        if imported not in files:
            _add_known(imported, files)
    for message in file.message_type:
        check_numbers(message)
    visible = _imported(file.dependency, files)
    resolve_names(file, types_of([*visible.values(), file]))
    pool = DescriptorPool()
    try:
        for each in _imported(file.dependency, files, is_deep=True).values():
            pool.AddSerializedFile(each.SerializeToString())
        pool.AddSerializedFile(file.SerializeToString())
        pool.FindFileByName(name)
    except (TypeError, KeyError, ValueError) as error:
        raise Malformed(f"protobuf refuses it: {error}") from None
    files[name] = file
    return ProtoTypes(file, types_of(_imported([name], files, is_deep=True).values()))


def _add_known(name: str, files: dict[str, FileDescriptorProto]) -> None:
    match = KNOWN.fullmatch(name)
    if match is not None:
        try:
            module = importlib.import_module(f"google.{match[1]}.{match[2]}_pb2")
        except ImportError:
            pass
        else:
            file = FileDescriptorProto.FromString(module.DESCRIPTOR.serialized_pb)
            for imported in file.dependency:
                if imported not in files:
                    _add_known(imported, files)
            files[name] = file
            return
    raise Malformed(f"it imports {name[:80]}, which is not known here; name it in references")


def _imported(
    names: Iterable[str], files: dict[str, FileDescriptorProto], *, is_deep: bool = False
) -> dict[str, FileDescriptorProto]:
    """Return files with those that they import publicly, or all; imported ones first."""
    found: dict[str, FileDescriptorProto] = {}

    def collect(name: str) -> None:
        if name in found:
            return
        file = files[name]
        public = [file.dependency[number] for number in file.public_dependency]
        for inner in file.dependency if is_deep else public:
            collect(inner)
        found[name] = file

    for name in names:
        collect(name)
    return found
