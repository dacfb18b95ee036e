"""registry/formats/protobuf: Protocol Buffers, proto2 and proto3.

tokens.py         Tokens: a .proto file, word by word; the same file in one layout
parser.py         ProtoParser: words to a FileDescriptorProto, protobuf's own form of a file
names.py          resolve_names: what a type's name means where it is used
checks.py         what protobuf's compiler refuses, and its library does not
printer.py        print_proto: a FileDescriptorProto as text
compatibility.py  what a later file can read
schema.py         ProtobufSchema: all of this, checked by protobuf itself
"""
