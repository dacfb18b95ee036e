"""The blocks of a page, the commands in them, and which of them no test can run."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parent.parent
PAGES = [
    path
    for path in [*sorted(ROOT.glob("*.md")), *sorted(ROOT.glob("docs/**/*.md"))]
    if not {"node_modules", ".venv"} & set(path.parts)
]
GUIDES = [ROOT / "README.md", *sorted(ROOT.glob("docs/*.md"))]
"""What a user reads, and copies from."""

NOT_RUN = {
    r"frazil up\b": "runs until it is stopped; the node of these tests is one",
    r"frazil demo\b(?!.*--(seconds|count))": "does not end, and begins with minutes of data",
    r"frazil sql( --(url|data|engine) \S+)*$": "a shell for people",
    r"frazil sql .*--engine": "a Spark that works for minutes; tests/lake",
    r"frazil pyspark\b": "a Spark of its own; tests/live/test_spark_docs.py",
    r"frazil appender\b": "needs a Kafka; tests/live/test_kafka_lake.py",
    r"frazil warm\b": "needs a network; set-up has called it",
    r"frazil doctor\b.*--(spark|config)": "a Spark, or settings, of the reader; tests/doctor",
    r"frazil (flush|maintain)\b.*--data": "a Spark of its own; tests/lake",
    r"frazil maintain\b": "takes long, and nothing is there to be done; tests/lake",
    r"frazil repair\b(?!.*--dry-run)": "asks before it changes something; tests/log",
    r"frazil subscribers\b.*--remove": "needs one to be removed",
    r"frazil \S+.*--(token-file|ca-file|tls-\S+)\b": "needs files of the reader; tests/live",
    r"frazil .*(/var/|/backup|/mnt/|https://)": "another machine",
    r"make\b": "targets are looked up; these tests are run by one of them",
    r"(python|spark-submit \S+ \S+) examples/": "does not end, on a Spark of its own; tests/live",
    r"(\S+/)?pip install\b|python3? -m (pip|venv)\b|git clone\b|cd frazil\b": "a network",
    r"opentelemetry-(bootstrap|instrument)\b": "a package that is not among ours",
    r"(sudo|docker|podman|kubectl|apt-get|systemctl|journalctl|crontab|openssl)\b": "root, or more",
    r"(rsync|cp|tar|mv) ": "folders of the reader",
    r"(npm|node|go|java) ": "other languages; tests/clients has their SDKs",
    r"\. \S*activate\b|source <\(": "the shell of the reader",
}
"""Commands that cannot be run here, and why. Their verbs and flags are parsed all the same."""
ENDLESS = re.compile(r"frazil tail\b|frazil status .*--watch|curl .*-N\b|curl -N\b")
"""Commands that are started, have to say something, and are stopped."""
JUDGES = re.compile(r"frazil doctor\b")
"""Commands that may find something about this machine, and end with 1 then."""
ON_FOLDER = re.compile(r"frazil\.open\(|RealDisk\(|frazil .*--data data\b")
"""What needs a folder that no node uses."""
ELSEWHERE = {
    ("demo.md", "sh"): "tests/otlp_files/test_docs_examples.py",
    ("export-import.md", "sh"): "tests/otlp_files/test_docs_examples.py",
    ("spark.md", "python"): "tests/live/test_spark_docs.py",
    ("operating.md", "python"): "tests/log/repair/test_repair.py",
}
"""Blocks of these pages have a test of their own."""

_FENCE = re.compile(r"^```([^\n]*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_HEREDOC = re.compile(r"<<-?\s*'?\"?(\w+)")
_OPERATORS = frozenset({"|", "||", "&&", ";", "&"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Block:
    """One block of a page, and where it begins."""

    page: Path
    line: int
    language: str
    text: str

    @property
    def place(self) -> str:
        return f"{self.page.relative_to(ROOT)}:{self.line}"


def blocks_of(page: Path, language: str | None = None) -> list[Block]:
    """All blocks of a page, or those in one language, in their order."""
    text = page.read_text(encoding="utf-8")
    found = [
        Block(
            page=page,
            line=text.count("\n", 0, match.start()) + 2,
            language=match[1].strip(),
            text=match[2],
        )
        for match in _FENCE.finditer(text)
    ]
    return [block for block in found if language in (None, block.language)]


def commands_of(text: str) -> list[str]:
    """The commands of a block, those of several lines whole."""
    commands: list[str] = []
    waiting = ""
    for line in text.splitlines():
        waiting = f"{waiting}\n{line}" if waiting else line
        if _is_whole(waiting):
            if _bare(waiting):
                commands.append(waiting)
            waiting = ""
    assert not waiting, f"this command has no end: {waiting}"
    return commands


def _is_whole(text: str) -> bool:
    if text.endswith("\\"):
        return False
    heredoc = _HEREDOC.search(text)
    if heredoc is not None and text.splitlines()[-1].strip() != heredoc[1]:
        return False
    try:
        shlex.split(text, comments=True)
    except ValueError:
        return False  # A quote is open.
    return True


def _bare(command: str) -> str:
    """A command without its remarks."""
    return "\n".join(re.sub(r"(^|\s+)#.*", "", line) for line in command.splitlines()).strip()


def reason_not_to_run(command: str) -> str | None:
    bare = _bare(command)
    for pattern, reason in NOT_RUN.items():
        if re.match(pattern, bare):
            return reason
    return None


def frazil_calls(command: str) -> Iterator[list[str]]:
    """What follows the word `frazil` in a command, also behind a pipe."""
    lexer = shlex.shlex(command, posix=True, punctuation_chars=True)
    lexer.whitespace_split = True
    call: list[str] = []
    for token in [*lexer, ";"]:
        if token in _OPERATORS or set(token) <= set("<>|&;()"):
            if call[:1] == ["frazil"]:
                yield call[1:]
            call = []
        else:
            call.append(token)
