"""Out of one node, into another: the same records, in all three signals."""

from __future__ import annotations

import gzip
import json
import random
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import zstandard
from google.protobuf import json_format

import frazil
from frazil import cli
from frazil.demo import Demo, DemoPlan, DemoSummary
from frazil.otlp_client import OtlpClient, OtlpTarget
from frazil.otlp_files.otlp_json import REQUESTS
from frazil.otlp_files.split import NAMES, request_of
from tests.clients.node import Node
from tests.sim.clock import SimClock

SETTINGS = "[lake]\nenabled = false\n\n[ingest]\njson_bytes_max = {json_bytes_max}\n"
LOOK_S, LOOKS_MAX = 0.05, 600
SMALL, USUAL = 100_000, 4_194_304


class Made:
    """A folder with the telemetry of the shop, and its export."""

    def __init__(self, folder: Path) -> None:
        self.config = folder / "frazil.toml"
        self.config.write_text(SETTINGS.format(json_bytes_max=USUAL))
        self.small = folder / "small.toml"
        self.small.write_text(SETTINGS.format(json_bytes_max=SMALL))
        self.data = folder / "first"
        self.summary = self._fill()
        self.file = folder / "all.jsonl"
        assert self.export("--output", str(self.file)) == 0

    def _fill(self) -> DemoSummary:
        clock = SimClock()
        with Node(self.data, "--config", str(self.config)) as node:
            sender = OtlpClient(OtlpTarget(url=f"http://127.0.0.1:{node.http_port}"), clock=clock)
            plan = DemoPlan(rate=5, seconds=1, backfill_minutes=1)
            demo = Demo(plan, sender, clock=clock, rand=random.Random(1))
            demo.run(lambda _: None)
            sender.close()
            assert node.stop() == 0
        return demo.summary

    def export(self, *flags: str, data: Path | None = None) -> int:
        where = ["--data", str(data or self.data), "--config", str(self.config)]
        return cli.main(["export", *where, *flags])


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Made:
    return Made(tmp_path_factory.mktemp("made"))


def records(path: Path) -> dict[str, Counter[str]]:
    """Every record of a file, with its resource, scope and metric, as a set that counts."""
    found: dict[str, Counter[str]] = {signal: Counter() for signal in NAMES}
    for text in path.read_bytes().splitlines():
        request = request_of(text)
        found[request.signal].update(
            json.dumps(record, sort_keys=True) for record in _records(request.content)
        )
    return found


def _records(content: dict[str, Any]) -> Iterator[Any]:
    """Walk down to what there are many of: the lists that a level holds."""
    ((name, resources),) = content.items()
    kind = name.removeprefix("resource")
    for resource in resources:
        about = resource.get("resource"), resource.get("schemaUrl")
        for scope in resource[f"scope{kind}"]:
            told = *about, scope.get("scope"), scope.get("schemaUrl")
            if kind != "Metrics":
                for record in scope["logRecords" if kind == "Logs" else "spans"]:
                    yield *told, record
                continue
            for metric in scope["metrics"]:
                (key,) = metric.keys() - {"name", "unit", "description"}
                for point in metric[key]["dataPoints"]:
                    data = {**metric[key], "dataPoints": [point]}
                    yield *told, {**metric, key: data}


def test_all_that_was_acknowledged(made: Made) -> None:
    """Is in the export, in lines that are official messages."""
    counts = {signal: sum(each.values()) for signal, each in records(made.file).items()}
    assert counts == {name: tally.acknowledged for name, tally in made.summary.tallies.items()}
    for text in made.file.read_bytes().splitlines():
        signal = request_of(text).signal
        json_format.Parse(text, REQUESTS[signal]())
        assert len(text) < USUAL


def test_there_and_back(made: Made, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Two files, packed differently, one of them twice, into a node that takes only small
    requests: it has each record once."""
    lines = made.file.read_bytes().splitlines(keepends=True)
    assert max(map(len, lines)) > SMALL, "some lines have to be cut"
    first, second = tmp_path / "first.jsonl.gz", tmp_path / "second.zst"
    first.write_bytes(gzip.compress(b"".join(lines[::2]), 1))
    second.write_bytes(zstandard.compress(b"".join(lines[1::2])))
    with Node(tmp_path / "data", "--config", str(made.small)) as node:
        url = f"http://127.0.0.1:{node.http_port}"
        flags = ["--endpoint", url, "--json"]
        assert cli.main(["import", str(first), str(second), *flags]) == 0
        said = json.loads(capsys.readouterr().out)
        assert cli.main(["import", str(first), *flags]) == 0
        asked = tmp_path / "asked.jsonl"
        _wait_for(node, made.summary)
        assert cli.main(["export", "--url", node.url, "--output", str(asked)]) == 0
        assert node.stop() == 0
    assert said["lines"] == len(lines)
    assert said["bad_lines"] == said["refused"] == 0
    assert said["acknowledged"] == {
        name: tally.acknowledged for name, tally in made.summary.tallies.items()
    }
    again = tmp_path / "again.jsonl"
    assert made.export("--output", str(again), data=tmp_path / "data") == 0
    assert records(again) == records(asked) == records(made.file)


def _wait_for(node: Node, summary: DemoSummary) -> None:
    """Rows are visible a moment after they are acknowledged."""
    wanted = sum(tally.acknowledged for tally in summary.tallies.values())
    tables = " UNION ALL ".join(f"SELECT _row FROM {name}" for name in ("logs", "spans", "metrics"))
    for _ in range(LOOKS_MAX):
        with frazil.connect(node.url) as asked:
            if asked.sql(f"SELECT count(*) FROM ({tables})").fetchall() == [(wanted,)]:
                return
        time.sleep(LOOK_S)
    raise AssertionError(f"{wanted} rows were not visible")


def test_choices(made: Made, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A signal, a service, a trace, a time, a condition: together, all of them count."""
    everything = records(made.file)["traces"]
    spans = [json.loads(text)[-1] for text in everything]
    trace_id = next(span["traceId"] for span in spans if span["name"] == "POST /checkout")
    path = tmp_path / "some.jsonl"
    output = ["--output", str(path)]
    assert made.export("--trace", trace_id.upper(), *output) == 0
    found = records(path)
    wanted = {text for text in everything if json.loads(text)[-1]["traceId"] == trace_id}
    assert found["traces"].keys() == wanted
    assert found["logs"]
    assert not found["metrics"]
    condition = ["--signal", "traces", "--where", "kind = 'SERVER' -- and no other"]
    assert made.export("--service", "cart", *condition, *output) == 0
    found = records(path)
    kinds = {json.loads(text)[-1]["kind"] for text in found["traces"]}
    assert kinds == {2}
    assert all('"cart"' in text for text in found["traces"])
    capsys.readouterr()
    assert made.export("--since", "yesterday", *output) == 2
    assert "15m" in capsys.readouterr().err
    assert made.export("--trace", trace_id, "--signal", "metrics", *output) == 2
    assert made.export("--where", "no_such_column = 1", *output) in (1, 2)
    assert "no_such_column" in capsys.readouterr().err


def test_times_cut_once(made: Made, tmp_path: Path) -> None:
    """What is before a moment and what is from then on is all there is."""
    spans = [json.loads(text)[-1] for text in records(made.file)["traces"]]
    times = sorted(int(span["startTimeUnixNano"]) for span in spans)
    moment = f"{_iso(times[len(times) // 2])}Z"
    before, after = tmp_path / "before.jsonl", tmp_path / "after.jsonl"
    assert made.export("--until", moment, "--output", str(before)) == 0
    assert made.export("--since", moment, "--output", str(after)) == 0
    first, second, whole = records(before), records(after), records(made.file)
    for signal in NAMES:
        assert first[signal]
        assert first[signal] + second[signal] == whole[signal]


def _iso(time_ns: int) -> str:
    from datetime import UTC, datetime

    return datetime.fromtimestamp(time_ns // 10**9, UTC).replace(tzinfo=None).isoformat()


def test_wrong_lines_are_told_and_others_go_on(
    tmp_path: Path, made: Made, capsys: pytest.CaptureFixture[str]
) -> None:
    """With file, line and reason, by us or by the node; 1 in the end."""
    path = tmp_path / "some.jsonl"
    log = '{"resourceLogs":[{"scopeLogs":[{"logRecords":[{"timeUnixNano":"%s"}]}]}]}'
    short = '{"resourceSpans":[{"scopeSpans":[{"spans":[{"traceId":"ab"},{}]}]}]}'
    path.write_text("\n".join([log % 1, "nonsense", log % "x", log % 2, short, ""]))
    with Node(tmp_path / "data", "--config", str(made.config)) as node:
        url = f"http://127.0.0.1:{node.http_port}"
        assert cli.main(["import", str(path), "--endpoint", url]) == 1
        assert node.stop() == 0
    output = capsys.readouterr()
    assert output.out == "5 lines. Acknowledged: 2 logs, 1 traces, 0 metrics.\n"
    told = output.err.splitlines()
    assert told[0].startswith(f"{path}:2: not JSON")
    assert told[1].startswith(f"{path}:3: HTTP 400: ")
    assert "timeUnixNano" in told[1]
    assert told[2] == f"{path}:5: the node did not take 1 of its records"
    assert told[3] == "3 lines were invalid or rejected."


def test_nobody_there(made: Made, capsys: pytest.CaptureFixture[str]) -> None:
    """The same sentence as of any sender."""
    arguments = ["import", str(made.file), "--endpoint", "http://127.0.0.1:9"]
    assert cli.main(arguments) == 1
    assert "frazil up" in capsys.readouterr().err
