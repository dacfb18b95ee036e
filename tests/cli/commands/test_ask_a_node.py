"""Verbs that query a node, against a real one."""

from __future__ import annotations

import csv
import io
import json
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import frazil
from frazil import cli
from frazil.cli.commands.tail import TailStream
from frazil.cli.terminal.text_width import width
from tests.cli import shop
from tests.clients.node import Node

LINES = 40
"""More lines than any test prints."""

Run = Callable[..., str]


@pytest.fixture(scope="module")
def node(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Node]:
    """A node with the telemetry of `shop`, shared by all tests."""
    folder = tmp_path_factory.mktemp("cli") / "data"
    with Node(folder, "--set", "lake.enabled=false") as started:
        shop.send(started)
        wait_for(started, "SELECT 1 FROM logs", shop.LOG_COUNT)
        wait_for(started, "SELECT 1 FROM spans", 5)
        yield started


def wait_for(node: Node, sql: str, count: int) -> None:
    client = frazil.connect(node.url)
    pause = threading.Event()
    for _ in range(600):
        if client.ask(sql).num_rows >= count:
            return
        pause.wait(0.1)
    raise AssertionError(f"{sql} did not return {count} rows")


@pytest.fixture
def run(
    node: Node, capfdbinary: pytest.CaptureFixture[bytes], monkeypatch: pytest.MonkeyPatch
) -> Run:
    """Return a function that runs a verb in this process and returns its output."""
    monkeypatch.setenv("FRAZIL_URL", node.url)
    monkeypatch.setenv("COLUMNS", "100")

    def run_verb(*arguments: str, code: int = 0) -> str:
        assert cli.main(arguments) == code, capfdbinary.readouterr().err
        out, err = capfdbinary.readouterr()
        return out.decode() if code == 0 else err.decode()

    return run_verb


# sql


SQL = "SELECT body, severity_number AS n, attributes, trace_id FROM logs ORDER BY body"


def test_json_output_equals_the_api_response(run: Run, node: Node) -> None:
    answer = frazil.connect(node.url).call("POST", "/api/v1/sql", {"sql": SQL})
    assert json.loads(run("sql", "--format", "json", SQL)) == answer
    assert json.loads(run("sql", "--json", SQL)) == answer
    assert json.loads(run("sql", "--json", "SELECT 1 AS a WHERE false")) == {
        "columns": ["a"],
        "rows": [],
    }


def test_csv_quotes_commas_and_newlines(run: Run) -> None:
    """Nested values are JSON."""
    rows = list(csv.DictReader(io.StringIO(run("sql", "--format", "csv", SQL))))
    assert [row["body"] for row in rows] == [
        "basket, with two\nthings",
        "from nowhere",
        "no money",
        "日本 🙂",
    ]
    assert json.loads(rows[2]["attributes"]) == {"user": "bob"}


def test_output_file_name_selects_arrow_or_parquet(run: Run, node: Node, tmp_path: Path) -> None:
    expected = frazil.connect(node.url).ask(SQL)
    run("sql", "--output", str(tmp_path / "rows.arrow"), SQL)
    assert pa.ipc.open_stream((tmp_path / "rows.arrow").read_bytes()).read_all() == expected
    run("sql", "--output", str(tmp_path / "rows.parquet"), SQL)
    assert pq.read_table(tmp_path / "rows.parquet").to_pylist() == expected.to_pylist()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["rows.arrow", "rows.parquet"]


def test_a_failed_query_keeps_the_old_output_file(run: Run, tmp_path: Path) -> None:
    target = tmp_path / "rows.csv"
    target.write_text("old")
    assert "nothing" in run("sql", "--output", str(target), "SELECT nothing", code=1)
    assert target.read_text() == "old"
    assert list(tmp_path.iterdir()) == [target]


def test_a_table_has_one_line_per_row(run: Run) -> None:
    """Also for values with newlines; the last line has the count."""
    *lines, foot = run("sql", SQL).splitlines()
    assert len(lines) == 8
    assert len({width(line) for line in lines}) == 1
    assert "basket, with two\\nthings" in lines[3]
    assert foot.startswith("4 rows (")


def test_a_file_may_have_several_statements(run: Run, tmp_path: Path) -> None:
    """Semicolons in strings do not end a statement; JSON output takes one statement."""
    script = tmp_path / "questions.sql"
    script.write_text("SELECT 'a;b' AS one; -- and; now\nSELECT 2 AS two")
    output = run("sql", "--file", str(script))
    assert "a;b" in output
    assert output.count("1 row (") == 2
    assert "2 queries" in run("sql", "--json", "--file", str(script), code=2)
    assert "no query" in run("sql", "-- nothing", code=2)
    assert "cannot be read" in run("sql", "--file", str(tmp_path / "none"), code=2)


def test_expanded_prints_one_line_per_column(run: Run) -> None:
    lines = run("sql", "--expanded", "SELECT 1 AS a, 'x' AS bb").splitlines()
    assert lines[1:3] == ["a  │ 1", "bb │ x"]


def test_functions_are_listed(run: Run) -> None:
    """The shell completes them. Tables of the engine can be queried like others."""
    output = run(
        "sql",
        "--format",
        "csv",
        "SELECT DISTINCT routine_name FROM information_schema.routines",
    )
    assert "matches" in output.splitlines()


def test_errors_say_what_to_do(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    """Wrong SQL, --url with --data, no node."""
    assert "did you mean body" in run("sql", "SELECT bodi FROM logs", code=1)
    assert "use only one of them" in run("sql", "--url", "x", "--data", "y", "SELECT 1", code=2)
    monkeypatch.setenv("FRAZIL_URL", "http://127.0.0.1:1")
    assert "start one with `frazil up`" in run("sql", "SELECT 1", code=1)


# trace


def test_a_trace_is_drawn_as_a_waterfall(run: Run) -> None:
    """Spans below their parents, with errors and missing parents."""
    lines = run("trace", shop.TRACE).splitlines()
    assert lines[0] == "shop: buy"
    assert "100 ms, 4 spans, 2 services, 1 failed" in lines[2]
    spans = [line for line in lines[4:] if " ms" in line]
    assert [line[2:].split("█")[0].rstrip() for line in spans] == [
        "shop buy",
        "└ shop call the bank",
        "  └ bank charge",
        "bank audit",
    ]
    assert spans[2].startswith("✗")
    assert any("NoMoney: the account is empty" in line for line in lines)
    assert any(f"parent span {'ff' * 8} is missing" in line for line in lines)
    assert any("1 link" in line for line in lines)
    assert max(map(width, lines)) <= 100


def test_bars_are_proportional_to_time(run: Run) -> None:
    lines = run("trace", shop.TRACE, "--width", "120").splitlines()
    root, call = (next(line for line in lines if name in line) for name in ("shop buy", "call the"))
    begin, total = root.index("█"), root.count("█")
    assert call.index("█") - begin == total // 10
    assert abs(call.count("█") - total * 6 // 10) <= 1


def test_logs_and_attributes_of_a_trace(run: Run) -> None:
    """Logs are below their span; control characters are escaped."""
    output = run("trace", shop.TRACE, "--logs", "-v")
    lines = output.splitlines()
    charge = next(i for i, line in enumerate(lines) if "bank charge" in line)
    audit = next(i for i, line in enumerate(lines) if "bank audit" in line)
    assert any("ERROR no money" in line for line in lines[charge:audit])
    assert "from nowhere" in lines[-1]
    assert "who = \\e[31mme" in output
    assert "\x1b" not in output
    assert f"link to trace {shop.OTHER}, span {shop.LONELY}" in output


def test_a_unique_prefix_of_a_trace_id_is_enough(run: Run) -> None:
    assert "frazil trace lists" in run("trace", "bb", code=1)
    assert "several trace ids start with aaaa" in run("trace", "aaaa", code=2)
    assert "character 1 of the query" in run("trace", "' OR 1=1", code=2)
    assert json.loads(run("trace", shop.TRACE[:-1] + "1", "--json"))["span_count"] == 4


def test_a_trace_as_json_has_its_logs_on_request(run: Run) -> None:
    found = json.loads(run("trace", shop.TRACE.upper(), "--json", "--logs"))
    assert [line["span"]["name"] for line in found["lines"]][:2] == ["buy", "call the bank"]
    assert len(found["logs"]) == 3


def test_traces_are_listed_by_service_errors_and_duration(run: Run) -> None:
    everything = [json.loads(line) for line in run("trace", "--json").splitlines()]
    assert {each["trace_id"] for each in everything} == {shop.TRACE, shop.OTHER}
    searches = (["service.name=bank"], ["duration>=1ms status:error"])
    for flags in (["--errors"], ["--service", "bank"], ["--min-duration", "50ms"], *searches):
        (only,) = run("trace", "--json", *flags).splitlines()
        assert json.loads(only)["trace_id"] == shop.TRACE
    assert "buy" in run("trace")
    assert "no traces match" in run("trace", "--service", "nobody")
    assert "No span has the field servce" in run("trace", "servce:bank")


# tail


def rows_of(node: Node, count: int, *flags: str, act: Callable[[], None]) -> list[str]:
    """Return the bodies of the first rows of a tail; `act` runs after the first."""
    options = cli.parser().parse_args(["tail", "--url", node.url, "--lines", "1", *flags])
    events = TailStream(frazil.connect(node.url), options).events()
    bodies = [next(events)[1]["body"]]
    act()
    while len(bodies) < count:
        name, row = next(events)
        bodies.append(row["body"] if name == "row" else name)
    return bodies


def test_a_tail_prints_history_then_new_rows(node: Node) -> None:
    """Each row once, in order, filtered."""

    def act() -> None:
        shop.send_logs(node, [shop.log("fine", 9), shop.log("bad", 17), shop.log("worse", 21)])

    assert rows_of(node, 3, "--level", "error", act=act) == ["no money", "bad", "worse"]


def test_a_tail_takes_search_box_queries(node: Node, run: Run) -> None:
    """For history and for new rows."""

    def act() -> None:
        shop.send_logs(node, [shop.log("so cheap", 9), shop.log("so dear", 17)])

    assert rows_of(node, 2, "severity:>=ERROR -bad -worse", act=act) == ["no money", "so dear"]
    assert "not closed" in run("tail", "(a", code=2)


def test_a_tail_continues_after_a_restart(node: Node) -> None:
    """No row is missed or printed twice."""

    def restart() -> None:
        shop.send_logs(node, [shop.log("before", 9)])
        node.stop()
        node.start()
        shop.send_logs(node, [shop.log("after", 9)])

    _, *events = rows_of(node, 5, act=restart)
    assert [event for event in events if event not in ("lost", "back")] == ["before", "after"]
    assert events.index("lost") < events.index("back")


# status, topics, subscribers


def test_status_fits_one_screen(run: Run, node: Node) -> None:
    found = json.loads(run("status", "--json"))
    assert found["state"] == "running"
    assert found["is_ready"] is True
    lines = run("status").splitlines()
    assert len(lines) < LINES
    assert max(map(width, lines)) <= 100
    assert any(line.startswith("│ traces") for line in lines)
    assert f"writer {node.process.pid} (" in lines[1]


def test_topics_and_subscribers_of_a_node(run: Run) -> None:
    topics = [json.loads(line) for line in run("topics", "--json").splitlines()]
    assert {"otlp_logs", "otlp_spans"} <= {topic["topic"] for topic in topics}
    assert "otlp_spans" in run("topics")
    readers = [json.loads(line) for line in run("subscribers", "--json").splitlines()]
    assert {"hot_logs", "hot_spans"} <= {reader["subscriber"] for reader in readers}
    assert "hot_logs" in run("subscribers")
    assert "stop the node" in run("subscribers", "--remove", "reader", code=2)


def test_a_data_folder_in_use_is_rejected(run: Run, node: Node) -> None:
    for verb in ("topics", "subscribers", "repair"):
        assert str(node.process.pid) in run(verb, "--data", str(node.folder), code=1)


def test_the_error_for_a_folder_in_use_suggests_url(
    node: Node, capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli.main(["sql", "--data", str(node.folder), "SELECT 1"]) == 1
    assert "--url instead of --data" in capsys.readouterr().err
