"""Messages on standard input and output, one per line."""

from __future__ import annotations

from typing import BinaryIO

from frazil.serve.mcp.protocol import McpServer

LINE_BYTES_MAX = 1024 * 1024


def serve_lines(server: McpServer, source: BinaryIO, out: BinaryIO) -> None:
    """Answer messages until the input ends. A line that is too long is answered as an error."""
    while line := source.readline(LINE_BYTES_MAX):
        while not line.endswith(b"\n"):
            rest = source.readline(LINE_BYTES_MAX)
            if not rest:
                break
            line = b'"too long"' + rest[-1:]
        if not line.strip():
            continue
        body = server.answer(line).body
        if body is not None:
            out.write(body + b"\n")
            out.flush()
