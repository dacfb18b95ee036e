"""Small parts of the command: completion, version, units, colors, statements, events."""

from __future__ import annotations

import io
import subprocess
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from frazil import __version__, cli
from frazil.cli.commands.tail import parse_events
from frazil.cli.entry_point import VERBS
from frazil.cli.terminal.colors import RED, Colors
from frazil.cli.terminal.units import age_text, brief_time, bytes_text, count_text, duration_text
from frazil.results import is_blank, split_statements


@pytest.fixture(scope="module")
def bash_script() -> str:
    command = [sys.executable, "-m", "frazil", "completion", "bash"]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["t"], {"tail", "trace", "tables", "topics"}),
        (["sql", "--format", "p"], {"parquet"}),
        (["trace", "--er"], {"--errors"}),
        (["completion", ""], {"bash", "zsh", "fish"}),
        (["topics", "de"], {"delete", "describe"}),
        (["tables", "changes", "--fo"], {"--follow"}),
        (["produce", "t", "/etc/os-rel"], {"/etc/os-release"}),
        (["consume", "--format", "h"], {"hex"}),
        (["config", "show", "--or"], {"--origin"}),
        (["up", "--data", "/us"], {"/usr"}),
        (["sql", "--file", "/etc/os-rel"], {"/etc/os-release"}),
    ],
)
def test_bash_completes(bash_script: str, words: list[str], expected: set[str]) -> None:
    """Verbs, values of flags, flags, folders and files."""
    quoted = " ".join(f"'{word}'" for word in ["frazil", *words])
    call = (
        f"COMP_WORDS=({quoted}); COMP_CWORD={len(words)}; "
        f"_shtab_frazil frazil '{words[-1]}' '{[*words, 'frazil'][-2]}'; "
        'for word in "${COMPREPLY[@]}"; do echo "$word"; done'
    )
    done = subprocess.run(
        ["bash", "-c", f"{bash_script}\n{call}"], capture_output=True, text=True, check=True
    )
    assert set(done.stdout.split()) == expected
    assert not done.stderr


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion_has_every_verb(shell: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["completion", shell]) == 0
    script = capsys.readouterr().out
    assert not [verb for verb in VERBS if verb not in script]


def test_version_has_what_a_bug_report_needs(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        cli.main(["--version"])
    assert ended.value.code == 0
    output = capsys.readouterr().out
    assert output.startswith(f"frazil {__version__} (")
    assert "Python 3." in output


def test_help_imports_nothing_heavy() -> None:
    """So that it appears at once."""
    heavy = ("numba", "pyarrow", "grpc", "httptools", "datafusion", "pyspark", "shtab")
    program = (
        "import sys\nfrom frazil.cli import parser\nparser().format_help()\n"
        f"print([name for name in {heavy} if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, check=True)
    assert done.stdout.decode().strip() == "[]"


def test_units_have_three_significant_digits() -> None:
    assert [duration_text(n) for n in (0, 999, 1_500, 12_340_000, 4_560_000_000)] == [
        "0 ns",
        "999 ns",
        "1.50 µs",
        "12.3 ms",
        "4.56 s",
    ]
    assert duration_text(185 * 10**9) == "3m 05s"
    assert [age_text(n) for n in (5, 3_700, 90_000)] == ["5s", "1h 01m", "1d 1h"]
    assert [bytes_text(n) for n in (512, 1_536, 10 * 2**30)] == ["512 B", "1.50 KiB", "10 GiB"]
    assert [count_text(n) for n in (12, 9_999, 45_600, 7_800_000)] == [
        "12",
        "9,999",
        "45.6 k",
        "7.80 M",
    ]
    assert brief_time(1_700_000_000_123_000_000) == "2023-11-14 22:13:20.123"


@given(st.integers(-(2**63), 2**64))
def test_any_time_can_be_formatted(unix_nano: int) -> None:
    """A client may send any number."""
    assert brief_time(unix_nano)


def test_colors_need_a_terminal_without_no_color(monkeypatch: pytest.MonkeyPatch) -> None:

    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setenv("TERM", "xterm")
    assert Colors.of(Terminal())("x", RED) == "\x1b[31mx\x1b[0m"
    assert Colors.of(io.StringIO())("x", RED) == "x"
    monkeypatch.setenv("TERM", "dumb")
    assert Colors.of(Terminal())("x", RED) == "x"
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("NO_COLOR", "1")
    assert Colors.of(Terminal())("x", RED) == "x"


PIECES = st.sampled_from(
    ["SELECT 1", "'a;b'", '"c;d"', "-- e;\n", "/* f; /* g; */ */", " ", "\n", "$$h;$$", "x"]
)


@given(st.lists(st.lists(PIECES, max_size=4), max_size=5))
def test_statements_are_split_only_at_their_end(written: list[list[str]]) -> None:
    texts = [" ".join(pieces) for pieces in written]
    expected = [text.strip() for text in texts if not is_blank(text)]
    statements, rest = split_statements("".join(f"{text};" for text in texts))
    assert statements == expected
    assert is_blank(rest)


@pytest.mark.parametrize("open_end", ["SELECT 'a;", 'SELECT "b;', "SELECT /* c;", "SELECT $$d;"])
def test_an_open_quote_continues_the_statement(open_end: str) -> None:
    statements, rest = split_statements(f"SELECT 1; {open_end}")
    assert statements == ["SELECT 1"]
    assert rest.strip() == open_end
    assert not is_blank(rest)


def test_server_sent_events_are_parsed() -> None:
    """Comments and heartbeats are skipped."""
    lines = [
        "retry: 1",
        "id: 0:5",
        "",
        ": still here",
        "",
        "event: skipped",
        'data: {"count":3}',
        "",
    ]
    assert list(parse_events(iter(lines))) == [
        ("row", "0:5", {}),
        ("row", None, {}),
        ("skipped", None, {"count": 3}),
    ]
