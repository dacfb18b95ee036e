"""model/protobuf: the compiled protobuf reader.

memory.py  raw memory, and the compiler
reader.py  protobuf's tags, lengths, numbers, texts
"""
