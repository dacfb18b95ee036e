"""Export from one node and import into another: the same records of all three signals."""

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
from frazil.model import LEVEL_NAMES, request_of
from frazil.otlp_client import OtlpClient, OtlpTarget
from frazil.otlp_files.otlp_json import REQUESTS
from tests.clients.node import Node
from tests.sim.clock import SimClock

SETTINGS = "[lake]\nenabled = false\n\n[ingest]\njson_bytes_max = {json_bytes_max}\n"
INTERVAL_S, TRIES_MAX = 0.05, 600
SMALL, USUAL = 100_000, 4_194_304


class Made:
    """A data folder with the telemetry of the shop, and its export."""

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
            client = OtlpClient(OtlpTarget(url=f"http://127.0.0.1:{node.http_port}"), clock=clock)
            plan = DemoPlan(rate=5, seconds=1, backfill_minutes=1)
            demo = Demo(plan, client, clock=clock, rand=random.Random(1))
            demo.run(lambda _: None)
            client.close()
            assert node.stop() == 0
        return demo.summary

    def export(self, *flags: str, data: Path | None = None) -> int:
        where = ["--data", str(data or self.data), "--config", str(self.config)]
        return cli.main(["export", *where, *flags])


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Made:
    return Made(tmp_path_factory.mktemp("made"))


def records(path: Path) -> dict[str, Counter[str]]:
    """Count every record of a file, with its resource, scope and metric."""
    exported_records: dict[str, Counter[str]] = {signal: Counter() for signal in LEVEL_NAMES}
    for text in path.read_bytes().splitlines():
        request = request_of(text)
        exported_records[request.signal].update(
            json.dumps(record, sort_keys=True) for record in _records(request.content)
        )
    return exported_records


def _records(content: dict[str, Any]) -> Iterator[Any]:
    """Yield every record with its outer fields."""
    ((name, resources),) = content.items()
    kind = name.removeprefix("resource")
    for resource in resources:
        outer = resource.get("resource"), resource.get("schemaUrl")
        for scope in resource[f"scope{kind}"]:
            errors = *outer, scope.get("scope"), scope.get("schemaUrl")
            if kind != "Metrics":
                for record in scope["logRecords" if kind == "Logs" else "spans"]:
                    yield *errors, record
                continue
            for metric in scope["metrics"]:
                (key,) = metric.keys() - {"name", "unit", "description"}
                for point in metric[key]["dataPoints"]:
                    data = {**metric[key], "dataPoints": [point]}
                    yield *errors, {**metric, key: data}


def test_the_export_has_every_acknowledged_record(made: Made) -> None:
    """In lines that protobuf's reader accepts."""
    counts = {signal: sum(each.values()) for signal, each in records(made.file).items()}
    assert counts == {name: total.acknowledged for name, total in made.summary.totals.items()}
    for text in made.file.read_bytes().splitlines():
        signal = request_of(text).signal
        json_format.Parse(text, REQUESTS[signal]())
        assert len(text) < USUAL


def test_an_import_stores_each_record_once(
    made: Made, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Of two compressed files, one imported twice, with lines above the node's limit."""
    lines = made.file.read_bytes().splitlines(keepends=True)
    assert max(map(len, lines)) > SMALL, "some lines must be split"
    first, second = tmp_path / "first.jsonl.gz", tmp_path / "second.zst"
    first.write_bytes(gzip.compress(b"".join(lines[::2]), 1))
    second.write_bytes(zstandard.compress(b"".join(lines[1::2])))
    with Node(tmp_path / "data", "--config", str(made.small)) as node:
        url = f"http://127.0.0.1:{node.http_port}"
        flags = ["--endpoint", url, "--json"]
        assert cli.main(["import", str(first), str(second), *flags]) == 0
        totals = json.loads(capsys.readouterr().out)
        assert cli.main(["import", str(first), *flags]) == 0
        exported = tmp_path / "asked.jsonl"
        _wait_for(node, made.summary)
        assert cli.main(["export", "--url", node.url, "--output", str(exported)]) == 0
        assert node.stop() == 0
    assert totals["lines"] == len(lines)
    assert totals["bad_lines"] == totals["refused"] == 0
    assert totals["acknowledged"] == {
        name: total.acknowledged for name, total in made.summary.totals.items()
    }
    again = tmp_path / "again.jsonl"
    assert made.export("--output", str(again), data=tmp_path / "data") == 0
    assert records(again) == records(exported) == records(made.file)


def _wait_for(node: Node, summary: DemoSummary) -> None:
    """Wait until all rows are visible."""
    expected = sum(total.acknowledged for total in summary.totals.values())
    tables = " UNION ALL ".join(f"SELECT _row FROM {name}" for name in ("logs", "spans", "metrics"))
    for _ in range(TRIES_MAX):
        with frazil.connect(node.url) as exported:
            if exported.sql(f"SELECT count(*) FROM ({tables})").fetchall() == [(expected,)]:
                return
        time.sleep(INTERVAL_S)
    raise AssertionError(f"{expected} rows were not visible")


def test_filters_are_combined(
    made: Made, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Signal, service, trace, time, condition."""
    everything = records(made.file)["traces"]
    spans = [json.loads(text)[-1] for text in everything]
    trace_id = next(span["traceId"] for span in spans if span["name"] == "POST /checkout")
    path = tmp_path / "some.jsonl"
    output = ["--output", str(path)]
    assert made.export("--trace", trace_id.upper(), *output) == 0
    exported_records = records(path)
    expected = {text for text in everything if json.loads(text)[-1]["traceId"] == trace_id}
    assert exported_records["traces"].keys() == expected
    assert exported_records["logs"]
    assert not exported_records["metrics"]
    condition = ["--signal", "traces", "--where", "kind = 'SERVER' -- and no other"]
    assert made.export("--service", "cart", *condition, *output) == 0
    exported_records = records(path)
    kinds = {json.loads(text)[-1]["kind"] for text in exported_records["traces"]}
    assert kinds == {2}
    assert all('"cart"' in text for text in exported_records["traces"])
    capsys.readouterr()
    assert made.export("--since", "yesterday", *output) == 2
    assert "15m" in capsys.readouterr().err
    assert made.export("--trace", trace_id, "--signal", "metrics", *output) == 2
    assert made.export("--where", "no_such_column = 1", *output) in (1, 2)
    assert "no_such_column" in capsys.readouterr().err


def test_since_and_until_split_without_overlap(made: Made, tmp_path: Path) -> None:
    spans = [json.loads(text)[-1] for text in records(made.file)["traces"]]
    times = sorted(int(span["startTimeUnixNano"]) for span in spans)
    moment = f"{_iso(times[len(times) // 2])}Z"
    before, after = tmp_path / "before.jsonl", tmp_path / "after.jsonl"
    assert made.export("--until", moment, "--output", str(before)) == 0
    assert made.export("--since", moment, "--output", str(after)) == 0
    first, second, whole = records(before), records(after), records(made.file)
    for signal in LEVEL_NAMES:
        assert first[signal]
        assert first[signal] + second[signal] == whole[signal]


def _iso(time_ns: int) -> str:
    from datetime import UTC, datetime

    return datetime.fromtimestamp(time_ns // 10**9, UTC).replace(tzinfo=None).isoformat()


def test_invalid_lines_are_reported_and_the_rest_is_sent(
    tmp_path: Path, made: Made, capsys: pytest.CaptureFixture[str]
) -> None:
    """With file, line and reason; the exit code is 1."""
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
    errors = output.err.splitlines()
    assert errors[0].startswith(f"{path}:2: not JSON")
    assert errors[1].startswith(f"{path}:3: HTTP 400: ")
    assert "timeUnixNano" in errors[1]
    assert errors[2] == f"{path}:5: the node rejected 1 of its records"
    assert errors[3] == "3 lines were invalid or rejected."


def test_an_unreachable_node_suggests_frazil_up(
    made: Made, capsys: pytest.CaptureFixture[str]
) -> None:
    arguments = ["import", str(made.file), "--endpoint", "http://127.0.0.1:9"]
    assert cli.main(arguments) == 1
    assert "frazil up" in capsys.readouterr().err
