"""COPY INTO logs: every record once, as protobuf decodes it and as SQL shows it."""

from __future__ import annotations

import json
import socket
import threading
from concurrent.futures import Future
from pathlib import Path
from typing import Any

import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from frazil.disk import RealDisk
from frazil.errors import Conflict, Malformed, Overloaded, Unavailable, Unresolved
from frazil.ingest import LogValues, log_request
from frazil.lake import LogLedger
from frazil.load.into_log import requests, staged_load
from frazil.load.into_log.log_loads import SOURCE, LogLoads
from frazil.load.into_log.staged_load import STAGED, LoadPosition
from frazil.log import (
    Append,
    AppendChannel,
    AppendResult,
    CommitSignal,
    CommitWaiter,
    Log,
    LogOwner,
    ObservedLog,
    Record,
    SourcePosition,
    append_of_records,
    serve_appends,
    serve_observer,
)
from frazil.model import MiB, Signal, SystemClock
from frazil.settings import IngestConfig, LimitsConfig, LogConfig, RedactRule
from tests.load.into_log.log_loading import LogLoading, open_log, opened_loading

NDJSON = "FILE_FORMAT=(TYPE=NDJSON)"
SYSLOG = "FILE_FORMAT=(TYPE=SYSLOG)"
OTLP = "FILE_FORMAT=(TYPE=OTLP_JSON)"
JSON_VALUES = st.recursive(
    st.booleans()
    | st.integers(-(2**63), 2**63 - 1)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(st.characters(exclude_categories=["Cs"]), max_size=10),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.text("abc", min_size=1), inner, min_size=1, max_size=3)
    ),
    max_leaves=6,
)
NAMES = st.sampled_from(["user", "n", "http.status", "Körper"])


def otlp_line(*bodies: str, signal: str = "Logs") -> bytes:
    records = [{"timeUnixNano": "5", "body": {"stringValue": body}} for body in bodies]
    request = {f"resource{signal}": [{f"scope{signal}": [{"logRecords": records}]}]}
    return json.dumps(request).encode() + b"\n"


ROWS = st.lists(
    st.tuples(
        st.text(st.characters(exclude_categories=["Cs"]), max_size=20),
        st.dictionaries(NAMES, JSON_VALUES, max_size=3),
    ),
    min_size=1,
    max_size=8,
)


def test_values_of_any_type(tmp_path: Path) -> None:
    """A field of NDJSON becomes an attribute with its value."""
    with opened_loading(tmp_path) as loading:

        @settings(max_examples=10, deadline=None, database=None, phases=[Phase.generate])
        @given(rows=ROWS)
        def check(rows: list[tuple[str, dict[str, object]]]) -> None:
            lines = [json.dumps({"msg": body, **fields}) for body, fields in rows]
            loading.put("a.ndjson", "\n".join(lines).encode())
            copy = "COPY INTO logs FROM @s MAPPING=(body=msg) FORCE=true"
            assert loading.copy(copy).row_count == len(rows)
            found = [record for _, record in loading.records()][-len(rows) :]
            for record, (body, fields) in zip(found, rows, strict=True):
                assert record.body.string_value == body
                attributes = {pair.key: plain(pair.value) for pair in record.attributes}
                assert attributes == wanted(fields)

        check()


def plain(value: Any) -> Any:
    """Return an AnyValue as Python has it; numbers compare by value, as a column may be DOUBLE."""
    match value.WhichOneof("value"):
        case "bool_value":
            return ("bool", value.bool_value)
        case "array_value":
            return [plain(each) for each in value.array_value.values]
        case "kvlist_value":
            return {pair.key: plain(pair.value) for pair in value.kvlist_value.values}
        case kind:
            return getattr(value, kind)


def wanted(value: object) -> object:
    match value:
        case bool():
            return ("bool", value)
        case list():
            return [wanted(each) for each in value]
        case dict():
            return {key: wanted(each) for key, each in value.items()}
    return value


def test_what_sql_shows(tmp_path: Path) -> None:
    with opened_loading(tmp_path) as loading:
        loading.put("a.log", b"first\r\n\nsecond\n")
        loading.put("b.syslog", b'<34>1 2026-09-21T14:00:00.5Z web app 7 ID [x k="v"] text\n')
        line = {
            "ts": "2026-01-02T03:04:05.123456789Z",
            "level": "ERROR",
            "msg": {"a": 1},
            "host": "h1",
            "trace_id": "0af7651916cd43dd8448eb211c80319c",
            "n": 3,
        }
        loading.put("c.ndjson", json.dumps(line).encode())
        loading.put("d.csv", b"at,text\n2026-01-02T03:04:05Z,x\n")
        loading.put("e.json", otlp_line("otlp"))
        for copy in (
            "FROM @s FILES=('a.log')",
            f"FROM @s FILES=('b.syslog') {SYSLOG}",
            "FROM @s FILES=('c.ndjson') MAPPING=(time=ts, severity_text=level, body=msg, "
            '"resource.host.name"=host)',
            "FROM (SELECT at AS time, text AS body, 'nginx' AS service_name, 1 AS \"a.b\" FROM @s) "
            "FILES=('d.csv')",
            f"FROM @s FILES=('e.json') {OTLP}",
        ):
            loading.copy(f"COPY INTO logs {copy}")
        rows = loading.rows(
            "SELECT time_unix_nano, service_name, host_name, severity_number, severity_text, body, "
            "trace_id, attributes FROM logs ORDER BY _offset, _row"
        )
        modified = (loading.files / "a.log").stat().st_mtime_ns // 1_000_000 * 1_000_000
        unknown = "unknown_service"
        trace_id, at = line["trace_id"], 1767323045_000000000
        data = {"syslog.facility": "4", "syslog.procid": "7", "syslog.msgid": "ID"}
        assert [tuple(row.values()) for row in rows] == [
            (modified, unknown, None, 0, None, "first", None, {}),
            (modified, unknown, None, 0, None, "second", None, {}),
            (
                1789999200_500000000,
                "app",
                "web",
                18,
                "crit",
                "text",
                None,
                data | {"syslog.x.k": "v"},
            ),
            (at + 123456789, unknown, "h1", 17, "ERROR", '{"a":1}', trace_id, {"n": "3"}),
            (at, "nginx", None, 0, None, "x", None, {"a.b": "1"}),
            (5, unknown, None, 0, None, "otlp", None, {}),
        ]


def test_once_and_errors(tmp_path: Path) -> None:
    with opened_loading(tmp_path) as loading:
        loading.put(
            "a.json", otlp_line("1") + b"no\n" + otlp_line("2") + otlp_line("x", signal="Spans")
        )
        loading.put("b.json", otlp_line("3", "4"))
        with pytest.raises(Malformed, match=r"a\.json, line 2: not JSON.*Nothing was loaded"):
            loading.copy(f"COPY INTO logs FROM @s {OTLP}")
        with pytest.raises(Malformed, match="MAX_ERRORS"):
            loading.copy(f"COPY INTO logs FROM @s {OTLP} ON_ERROR=CONTINUE MAX_ERRORS=1")
        with pytest.raises(Malformed, match="VALIDATE failed"):
            loading.copy(
                f"COPY INTO logs FROM @s {OTLP} ON_ERROR=CONTINUE VALIDATE (MAX_ERROR_RATE 0.1)"
            )
        checked = loading.copy(
            f"COPY INTO logs FROM @s {OTLP} ON_ERROR=CONTINUE VALIDATION_MODE=RETURN_ERRORS"
        )
        assert [(e.line, e.reason[:25]) for e in checked.reports[0].errors] == [
            (2, "not JSON: Input data was "),
            (4, "it has traces; COPY INTO "),
        ]
        assert loading.bodies() == [] and not list(loading.data.glob("loads/logs/*"))
        skipped = loading.copy(f"COPY INTO logs FROM @s {OTLP} ON_ERROR=SKIP_FILE")
        assert [report.is_skipped for report in skipped.reports] == [True, False]
        done = loading.copy(f"COPY INTO logs FROM @s {OTLP} ON_ERROR=CONTINUE")
        assert (done.row_count, done.error_count, done.known_count) == (2, 2, 1)
        assert loading.copy(f"COPY INTO logs FROM @s {OTLP}").known_count == 2
        loading.put("b.json", otlp_line("5"))
        loading.put("empty.json", b"")
        assert loading.copy(f"COPY INTO logs FROM @s {OTLP} PURGE=true").row_count == 1
        assert [path.name for path in loading.files.iterdir()] == ["a.json"]
        assert loading.bodies() == ["3", "4", "1", "2", "5"]
        ledger = LogLedger(RealDisk(loading.data), "logs").read().to_pylist()
        assert [(e["uri"][-6:], e["status"], e["rows"], e["errors"]) for e in ledger] == [
            ("a.json", "skipped", 0, 1),
            ("b.json", "loaded", 2, 0),
            ("a.json", "loaded", 2, 2),
            ("b.json", "loaded", 1, 0),
            ("y.json", "loaded", 0, 0),
        ]


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("COPY INTO logs (body VARCHAR) FROM @s", "has its columns"),
        ("COPY INTO spans FROM @s FILE_FORMAT=(TYPE=CSV)", "loaded from OTLP/JSON"),
        (f"COPY INTO logs FROM @s {OTLP} MAPPING=(body=a)", "leave SELECT and MAPPING out"),
        ("COPY INTO logs FROM (SELECT a FROM @s) MAPPING=(body=a)", "not both"),
        ("COPY INTO logs FROM @s MAPPING=(body=nothing)", "which no file has"),
        ("COPY INTO logs FROM @s MAPPING=(body=a, time=b)", "type BIGINT"),
        ("COPY INTO logs FROM (SELECT a AS _offset FROM @s)", "set by Frazil"),
        ("COPY INTO logs FROM @s MAPPING=(body=a) VALIDATE (UNIQUE (a))", "NOT EMPTY and"),
        ("COPY INTO logs FROM (SELECT 'x' AS trace_id FROM @s)", "32 hex digits"),
        ('COPY INTO logs FROM (SELECT a AS "resourceLogs" FROM @s)', "TYPE=OTLP_JSON"),
    ],
)
def test_statements_that_are_refused(tmp_path: Path, text: str, reason: str) -> None:
    with opened_loading(tmp_path) as loading:
        loading.put("a.ndjson", b'{"a": "x", "b": 1}\n')
        with pytest.raises(Malformed, match=reason):
            loading.copy(text)
        assert loading.bodies() == []


def test_redaction_and_limits(tmp_path: Path) -> None:
    """What rules remove is in no file of the data folder, also not in the staged ones."""
    secret = "4111111111111111"
    rules = (
        RedactRule(key="password", action="drop"),
        RedactRule(pattern="[0-9]{16}", action="mask"),
    )
    limits = IngestConfig(limits=LimitsConfig(log_body_bytes_max=64, when_exceeded="reject"))
    with opened_loading(tmp_path, limits, *rules) as loading:
        lines = [{"msg": f"card {secret}", "password": secret}, {"msg": "x" * 65}, {"msg": "y"}]
        loading.put("a.ndjson", "".join(json.dumps(line) + "\n" for line in lines).encode())
        copy = f"COPY INTO logs FROM @s {NDJSON} MAPPING=(body=msg)"
        with pytest.raises(Malformed, match=r"line 2: .*log_body_bytes_max"):
            loading.copy(copy)
        done = loading.copy(f"{copy} ON_ERROR=CONTINUE")
        assert (done.row_count, done.error_count) == (2, 1)
        assert loading.bodies() == ["card ***", "y"]
        assert not [record for _, record in loading.records() if record.attributes]
        for path in loading.data.rglob("*"):
            assert not path.is_file() or secret.encode() not in path.read_bytes()


class Failing:
    """A log whose owner ends after some steps, before or after the append."""

    def __init__(self, log: Log, steps: int, *, is_appended: bool) -> None:
        self._log, self._left, self._is_appended = log, steps, is_appended

    def append_step(self, topic: str, append: Append) -> Future[AppendResult]:
        self._left -= 1
        if self._left >= 0:
            return self._log.append_step(topic, append)
        if self._is_appended:
            self._log.append_step(topic, append).result()
        raise Unresolved("the owner ended")

    def source_position(
        self, topic: str, source: str, *, partition: int = 0
    ) -> SourcePosition | None:
        return self._log.source_position(topic, source, partition=partition)


@pytest.mark.parametrize("is_appended", [False, True])
@pytest.mark.parametrize("steps", [0, 1, 3])
def test_a_load_that_was_cut_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, steps: int, is_appended: bool
) -> None:
    """Also if its files are gone. One that had not begun did not happen."""
    monkeypatch.setattr(requests, "REQUEST_ROWS", 10)
    monkeypatch.setattr(staged_load, "STEP_BYTES", 1)
    lines = [f"line {number}" for number in range(50)]
    with open_log(tmp_path) as log:
        loading = LogLoading(tmp_path, log, through=Failing(log, steps, is_appended=is_appended))
        loading.put("a.txt", "\n".join(lines).encode())
        with pytest.raises(Unresolved):
            loading.copy("COPY INTO logs FROM @s")
        has_begun = steps > 0 or is_appended
        assert len(loading.bodies()) == 10 * (steps + is_appended)
    (loading.files / "a.txt").unlink()
    with open_log(tmp_path) as log:
        again = LogLoading(tmp_path, log)
        assert again.loads.has_staged()
        again.loads.finish(again.progress)
        assert again.bodies() == (lines if has_begun else [])
        assert LogLedger(RealDisk(again.data), "logs").read().num_rows == has_begun
        assert not list(again.data.glob(f"loads/logs/*{STAGED}"))


def test_a_full_log_makes_a_load_wait(tmp_path: Path) -> None:
    """Clients can still append, and a cancelled load goes on later."""
    config = LogConfig(disk_bytes_max=16 * MiB, segment_bytes_max=4 * MiB)
    with open_log(tmp_path, config) as log:
        loading = LogLoading(tmp_path, log, make_room=lambda: loading.progress.group.cancel())
        lines = [f"{number:06} " + "x" * 1000 for number in range(15_000)]
        loading.put("a.txt", "\n".join(lines).encode())
        with pytest.raises(Unavailable, match="part of the load is in logs"):
            loading.copy("COPY INTO logs FROM @s")
        assert loading.progress.step.startswith("waiting for the log")
        assert 0 < len(loading.bodies()) < len(lines)
        with pytest.raises(Overloaded):
            log.append_step(Signal.LOGS.topic, _any_append())
        log.append(Signal.LOGS.topic, _any_append()).result()
    with open_log(tmp_path) as log:
        again = LogLoading(tmp_path, log)
        assert again.copy("COPY INTO logs FROM @s").known_count == 1
        bodies = again.bodies()
        assert [body for body in bodies if body != "client"] == lines


def _any_append() -> Append:
    body = log_request(
        [LogValues(time_unix_nano=1, observed_time_unix_nano=1, body="client", attributes={})]
    )
    return append_of_records([Record(offset=0, timestamp_ms=1, key=None, value=body)])


def test_a_ledger_that_is_not_that_of_the_log(tmp_path: Path) -> None:
    """Of a folder that was put together from backups: known files are those that the log has."""
    with opened_loading(tmp_path) as loading:
        loading.put("a.txt", b"a\n")
        loading.copy("COPY INTO logs FROM @s")
        before = LogLedger(RealDisk(loading.data), "logs").read()
        loading.put("b.txt", b"b\n")
        loading.copy("COPY INTO logs FROM @s")
        after = LogLedger(RealDisk(loading.data), "logs").read()
        LogLedger(RealDisk(loading.data), "logs").write(before)
        with pytest.raises(Conflict, match="FORCE=true"):
            loading.copy("COPY INTO logs FROM @s")
    (tmp_path / "other").mkdir()
    with opened_loading(tmp_path / "other") as other:
        LogLedger(RealDisk(other.data), "logs").write(after)
        other.put("a.txt", b"a\n")
        assert other.copy("COPY INTO logs FROM @s").known_count == 0


def test_steps_of_another_process(tmp_path: Path) -> None:
    """The reader of a node appends through the channel, and asks for the position."""
    ours, theirs = socket.socketpair()
    our_calls, their_calls = socket.socketpair()
    signal = CommitSignal()
    with open_log(tmp_path) as log:
        serving = [
            threading.Thread(target=serve_appends, args=(log, ours)),
            threading.Thread(target=serve_observer, args=(log, our_calls)),
        ]
        for thread in serving:
            thread.start()
        observed = ObservedLog(
            RealDisk(tmp_path / "data"),
            LogOwner(their_calls),
            CommitWaiter(signal.descriptor, SystemClock()),
            AppendChannel(theirs),
        )
        loading = LogLoading(tmp_path, log, through=observed)
        assert observed.source_position(Signal.LOGS.topic, SOURCE) is None
        loading.put("a.txt", b"a\nb\n")
        loading.copy("COPY INTO logs FROM @s")
        loading.put("b.txt", b"c\n")
        loading.copy("COPY INTO logs FROM @s")
        found = observed.source_position(Signal.LOGS.topic, SOURCE)
        assert found is not None and found.position is not None
        assert LoadPosition.decode(found.position).request_count == 1
        assert loading.bodies() == ["a", "b", "c"]
        observed.close()
        for thread in serving:
            thread.join()
    assert isinstance(loading.loads, LogLoads)
