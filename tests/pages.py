"""Code blocks of the docs, the commands in them, and those that no test can run."""

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
"""Pages for users."""

NOT_RUN = {
    r"frazil up\b": "runs until stopped; these tests run one",
    r"frazil demo\b(?!.*--(seconds|count))": "runs until stopped, after minutes of backfill",
    r"frazil sql( --(url|data|engine) \S+)*$": "an interactive shell",
    r"frazil sql .*--engine": "takes minutes on Spark; tests/lake",
    r"frazil pyspark\b": "starts Spark; tests/live/spark/test_docs.py",
    r"frazil appender\b": "needs a Kafka; tests/live/kafka/test_lake.py",
    r"frazil mcp\b": "speaks on standard input; tests/serve/mcp",
    r"claude\b": "a client of the reader",
    r"frazil warm\b": "needs a network; part of the set-up",
    r"frazil doctor\b.*--(spark|config)": "needs Spark or files of the reader; tests/doctor",
    r"frazil (flush|maintain)\b.*--data": "starts Spark; tests/lake",
    r"frazil maintain\b": "slow, with nothing to do; tests/lake",
    r"frazil retention .*--(dry-run|apply)": "needs rules; tests/lake/maintain",
    r"frazil (backup|restore)\b": "in order; tests/live/test_backup.py",
    r"frazil repair\b(?!.*--dry-run)": "asks for confirmation; tests/log",
    r"frazil users (add|remove)\b": "asks for a password; tests/live/kafka_port/test_access.py",
    r"frazil subscribers\b.*--remove": "needs a subscriber to remove",
    r"frazil \S+.*--(token-file|ca-file|tls-\S+)\b": "needs files of the reader; tests/live",
    r"frazil .*(/var/|/backup|/mnt/|https://)": "another machine",
    r"export .*(frazil\.example|the-token|/etc/ssl)": "another machine",
    r"make\b": "only the targets are checked",
    r"(python|spark-submit \S+ \S+) examples/": "runs until stopped, on Spark; tests/live",
    r"(\S+/)?pip install\b|python3? -m (pip|venv)\b|git clone\b|cd frazil\b": "a network",
    r"opentelemetry-(bootstrap|instrument)\b": "not a dependency",
    r"(sudo|docker|podman|kubectl|helm|apt-get|crontab|openssl)\b": "root, or more",
    r"(systemctl|journalctl)\b": "a service manager",
    r"(useradd|runuser|install|\S+/pip) ": "root; tests/deploy",
    r"(rsync|cp|tar|mv) ": "folders of the reader",
    r"(npm|node|go|java) ": "other languages; tests/clients has their SDKs",
    r"\. \S*activate\b|source <\(": "the shell of the reader",
}
"""Commands that cannot be run here, and why. Their verbs and flags are still parsed."""
ENDLESS = re.compile(
    r"frazil tail\b|frazil status .*--watch|frazil consume .*--follow|curl .*-N\b|curl -N\b"
)
"""Commands that must print something, and are then stopped."""
JUDGES = re.compile(r"frazil doctor\b")
"""Commands that may exit with 1 because of this machine."""
ON_FOLDER = re.compile(r"frazil\.open\(|RealDisk\(|frazil .*--data data\b")
"""Needs a data folder without a running node."""
ELSEWHERE = {
    ("demo.md", "sh"): "tests/otlp_files/test_docs_examples.py",
    ("export-import.md", "sh"): "tests/otlp_files/test_docs_examples.py",
    ("spark.md", "python"): "tests/live/spark/test_docs.py",
    ("operating.md", "python"): "tests/log/repair/test_repair.py",
}
"""Pages whose blocks have their own test."""

_FENCE = re.compile(r"^```([^\n]*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_HEREDOC = re.compile(r"<<-?\s*'?\"?(\w+)")
_OPERATORS = frozenset({"|", "||", "&&", ";", "&"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Block:
    """One code block and its location."""

    page: Path
    line: int
    language: str
    text: str

    @property
    def place(self) -> str:
        return f"{self.page.relative_to(ROOT)}:{self.line}"


def blocks_of(page: Path, language: str | None = None) -> list[Block]:
    """Return the code blocks of a page in order, of all languages or one."""
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
    """Return the commands of a block; one may span lines."""
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
    """Return a command without comments."""
    return "\n".join(re.sub(r"(^|\s+)#.*", "", line) for line in command.splitlines()).strip()


def reason_not_to_run(command: str) -> str | None:
    bare = _bare(command)
    for pattern, reason in NOT_RUN.items():
        if re.match(pattern, bare):
            return reason
    return None


def frazil_calls(command: str) -> Iterator[list[str]]:
    """Yield the arguments of each `frazil` call in a command, also after a pipe."""
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
