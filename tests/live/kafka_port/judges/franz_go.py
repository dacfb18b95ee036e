"""The tests of franz-go's package kgo that talk to a broker, each in a process of its own."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from functools import partial
from pathlib import Path

from tests.live.kafka_port.judges.build import built, run
from tests.live.kafka_port.judges.outcomes import JudgeTest, Outcome, Result

MODULE = "github.com/twmb/franz-go"
VERSION = "v1.22.1"
PACKAGE = "pkg/kgo"
PROGRAM = "kgo.test"
RECORDS = 50_000
"""What the longest tests produce. Their own default is 500,000."""
TEST_SECONDS_MAX = 600
TIMES = {"TestGroupSimple": 2}
"""How often a test is run, if not once: this one asks for the broker's versions too late to use
them the first time."""
HELPERS = ("newTestClient", "newTestConsumer", "testClientOpts", "getSeedBrokers", "tmpTopic(")
"""A test that calls one of them needs a broker."""
OUTCOMES = {"PASS": Outcome.PASSED, "FAIL": Outcome.FAILED, "SKIP": Outcome.SKIPPED}
ENDED = re.compile(r"^\s*--- (PASS|FAIL|SKIP): (\S+)", re.MULTILINE)


def tests() -> list[JudgeTest]:
    """Return the tests that need a broker, by file."""
    folder = built(f"franz-go-{VERSION}", _build)
    found = []
    for file in sorted((folder / "source" / PACKAGE).glob("*_test.go")):
        for function in re.split(r"(?m)^func ", file.read_text(encoding="utf-8"))[1:]:
            name = re.match(r"(Test\w+)\(", function)
            if name is not None and any(helper in function for helper in HELPERS):
                found.append(JudgeTest(name=name[1], run=partial(_run, folder, name[1])))
    return found


def _build(folder: Path) -> None:
    """Compile the tests in a copy: the module's own folder is read-only."""
    run(["go", "mod", "download", f"{MODULE}@{VERSION}"], folder)
    downloaded = Path(run(["go", "env", "GOMODCACHE"], folder).strip())
    source = folder / "source"
    shutil.copytree(downloaded / f"{MODULE}@{VERSION}", source)
    for path in (source, *source.rglob("*")):
        path.chmod(path.stat().st_mode | 0o200)
    run(["go", "test", "-c", "-o", str(folder / PROGRAM), f"./{PACKAGE}"], source)


def _run(folder: Path, name: str, address: str) -> dict[str, Result]:
    environment = {
        **os.environ,
        "KGO_SEEDS": address,
        "KGO_TEST_RF": "1",
        "KGO_TEST_RECORDS": str(RECORDS),
        "KGO_LOG_LEVEL": "none",
    }
    done = subprocess.run(
        [
            *(folder / PROGRAM, "-test.v", "-test.run", f"^{name}$"),
            *("-test.timeout", f"{TEST_SECONDS_MAX}s"),
            *("-test.count", str(TIMES.get(name, 1))),
        ],
        cwd=folder / "source" / PACKAGE,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        check=False,
    )
    output = done.stdout.decode(errors="replace")
    ended = {each[2]: OUTCOMES[each[1]] for each in ENDED.finditer(output)}
    if done.returncode != 0:
        ended[name] = Outcome.FAILED  # also if it ended before it said so
    return {each: Result.of(outcome, output) for each, outcome in ended.items()}
