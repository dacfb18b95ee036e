"""model/protobuf: compiled protobuf reader.

memory.py  raw memory access, and the compile decorators
reader.py  tags, lengths, numbers, strings
"""
