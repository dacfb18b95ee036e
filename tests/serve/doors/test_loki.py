# ruff: noqa: E501 # a case is a line
"""What Grafana's Loki source, Logs Drilldown and logcli send is answered, from a shop's telemetry."""

from __future__ import annotations

import http.client
import json
from collections.abc import Iterator
from typing import Any
from urllib.parse import urlencode

import pytest
from websockets.exceptions import InvalidStatus
from websockets.sync.client import connect

from tests.conformance.cases import log as log_record
from tests.conformance.cases import logs
from tests.serve.served import ANSWER_S, Said, Served

API = "/loki/api/v1"
CATEGORIZED = {"X-Loki-Response-Encoding-Flags": "categorize-labels"}
SELECTOR = '{service_name="checkout"}'
ANY = '{service_name=~".+"}'


@pytest.fixture(scope="module")
def times(shop: tuple[Served, Any]) -> dict[str, str]:
    """`start` and `end` of all log records, in nanoseconds."""
    sql = "SELECT CAST(min(time) AS BIGINT), CAST(max(time) AS BIGINT) FROM logs"
    first, last = shop[0].embedded.sql(sql).fetchall()[0]
    return {"start": str(first * 1000), "end": str(last * 1000 + 1000)}


@pytest.fixture
def trace_id(there: Served) -> str:
    sql = (
        "SELECT trace_id FROM logs WHERE service_name = 'checkout' AND trace_id IS NOT NULL LIMIT 1"
    )
    return str(there.embedded.sql(sql).fetchall()[0][0])


def ask(there: Served, path: str, headers: Any = None, **fields: str) -> Said:
    return there.ask("GET", f"{API}/{path}?{urlencode(fields)}", headers=headers)


def is_empty(value: Any) -> bool:
    """Whether an answer has nothing in it."""
    if isinstance(value, dict) and "data" in value:
        return is_empty(value["data"])
    if isinstance(value, dict) and "result" in value:
        return not value["result"]
    return not value or (isinstance(value, dict) and not any(value.values()))


EXPLORE: list[tuple[str, dict[str, str]]] = [
    ("query", {"query": "vector(1)+vector(1)", "time": "4000000000", "direction": "backward"}),
    ("labels", {}),
    ("labels", {"query": SELECTOR}),
    ("label/service_name/values", {}),
    ("label/k8s_pod_name/values", {"query": SELECTOR}),
    ("series", {"match[]": SELECTOR}),
    ("index/stats", {"query": SELECTOR}),
    ("query_range", {"query": SELECTOR, "direction": "backward", "limit": "1000", "step": "15000ms"}),
    ("query_range", {"query": SELECTOR + " |= ``", "direction": "forward", "limit": "10"}),
    ("query_range", {"query": f"sum by (level, detected_level) (count_over_time({SELECTOR} |= `` | drop __error__[15000ms]))", "step": "15000ms"}),
    ("query_range", {"query": f"sum(rate({SELECTOR}[1m])) by (k8s_pod_name)", "step": "1000ms"}),
    ("query_range", {"query": f"topk(5, sum by (service_name) (rate({ANY}[1m])))", "step": "5"}),
    ("query", {"query": f"sum(count_over_time({ANY}[1m]))", "time": "end"}),
    ("detected_fields", {"query": ANY, "limit": "1000", "line_limit": "1000"}),
    ("detected_field/severity_text/values", {"query": ANY, "limit": "1000"}),
    ("format_query", {"query": SELECTOR + "|=``"}),
]  # fmt: skip
DRILLDOWN: list[tuple[str, dict[str, str]]] = [
    ("index/volume", {"query": ANY, "limit": "5000", "targetLabels": "service_name"}),
    ("index/volume", {"query": '{service_name=~".*check.*"}', "limit": "1000", "aggregateBy": "labels"}),
    ("index/volume_range", {"query": ANY, "step": "5s", "targetLabels": "service_name"}),
    ("query_range", {"query": "sum by (level, detected_level) (count_over_time({service_name=`checkout`}      | drop __error__ [2s]))", "step": "2000ms"}),
    ("query_range", {"query": "{service_name=`checkout`}     | json | logfmt | drop __error__, __error_details__   ", "limit": "100"}),
    ("query_range", {"query": "sum(count_over_time({service_name=`checkout`}    | json | logfmt | drop __error__, __error_details__ | severity_text!=\"\" [5s])) by (severity_text)", "step": "5000ms"}),
    ("query_range", {"query": "sum by (detected_level) (count_over_time({service_name=`checkout`} | detected_level=~\"info|error\" [5s]))", "step": "5000ms"}),
    ("query_range", {"query": '{service_name=`checkout`} |~ "(?i)ORDER"', "limit": "100"}),
    ("detected_labels", {"query": SELECTOR}),
    ("detected_fields", {"query": SELECTOR}),
    ("patterns", {"query": SELECTOR, "step": "5s"}),
    ("drilldown-limits", {}),
    ("status/buildinfo", {}),
]  # fmt: skip


@pytest.mark.parametrize(
    ("path", "fields"), [*EXPLORE, *DRILLDOWN], ids=lambda value: str(value)[:60]
)
def test_what_grafana_sends_is_answered(
    there: Served, times: dict[str, str], path: str, fields: dict[str, str]
) -> None:
    """Each with data, with parameters that we do not know, and as a form where it may be one."""
    sent = {**times, **fields, "since_version": "unknown"}
    if sent.get("time") == "end":
        sent["time"] = times["end"]
    said = ask(there, path, CATEGORIZED, **sent)
    assert said.status == 200, said.body
    assert said.headers["content-type"].startswith("application/json")
    assert not is_empty(said.json)
    if "limits" in path or "status" in path:
        return
    form = {"Content-Type": "application/x-www-form-urlencoded", **CATEGORIZED}
    posted = there.ask("POST", f"{API}/{path}", urlencode(sent).encode(), form)
    assert posted.json.get("data") == said.json.get("data")


def test_health_is_one_frame_of_two(there: Served) -> None:
    data = ask(there, "query", query="vector(1)+vector(1)", time="4000000000").json["data"]
    assert data["resultType"] == "vector"
    assert data["result"] == [{"metric": {}, "value": [4000000000, "2"]}]


def test_lines_have_three_kinds_of_labels(there: Served, times: dict[str, str]) -> None:
    """With the flag, those of the stream, of the record and of the line are apart."""
    query = f"{SELECTOR} | pattern `<first> <_>` | first!=``"
    plain = ask(there, "query_range", query=query, limit="1", **times).json["data"]
    apart = ask(there, "query_range", CATEGORIZED, query=query, limit="1", **times).json["data"]
    stream, entry = apart["result"][0]["stream"], apart["result"][0]["values"][0]
    assert apart["encodingFlags"] == ["categorize-labels"]
    assert stream["service_name"] == "checkout"
    assert isinstance(entry[0], str)
    assert entry[1].split()[0] == entry[2]["parsed"]["first"]
    assert entry[2]["structuredMetadata"]["severity_text"]
    together = {**stream, **entry[2]["structuredMetadata"], **entry[2]["parsed"]}
    assert plain["result"] == [{"stream": together, "values": [entry[:2]]}]


def test_all_lines_are_there_once(there: Served, times: dict[str, str]) -> None:
    """Lines, counts and statistics agree with SQL."""
    count, size = there.embedded.sql(
        "SELECT count(*), sum(octet_length(body)) FROM logs"
    ).fetchall()[0]
    lines = ask(there, "query_range", query=ANY, limit="5000", **times).json["data"]["result"]
    stamps = [int(entry[0]) for stream in lines for entry in stream["values"]]
    assert len(stamps) == count
    stats = ask(there, "index/stats", query=ANY, **times).json
    assert (stats["entries"], stats["bytes"]) == (count, size)
    volume = ask(there, "index/volume", query=ANY, **times).json["data"]["result"]
    assert sum(int(one["value"][1]) for one in volume) == size
    patterns = ask(there, "patterns", query=ANY, step="5s", **times).json["data"]
    assert sum(n for one in patterns for _, n in one["samples"]) == count


def test_a_trace_finds_its_lines(there: Served, times: dict[str, str], trace_id: str) -> None:
    """Both queries that Grafana makes of a trace."""
    wanted = there.embedded.sql(
        f"SELECT count(*) FROM logs WHERE service_name = 'checkout' AND trace_id = '{trace_id}'"
    ).fetchall()[0][0]
    queries = (
        f"{SELECTOR} | label_format log_line_contains_trace_id="
        f'`{{{{ contains "{trace_id}" __line__  }}}}` '
        f'| log_line_contains_trace_id="true" or trace_id="{trace_id}"',
        f'{SELECTOR} | logfmt | json | drop __error__ | trace_id="{trace_id}"',
    )
    for query in queries:
        said = ask(there, "query_range", query=query, **times)
        found = said.json["data"]["result"]
        assert sum(len(stream["values"]) for stream in found) == wanted


REFUSED = [
    ("query", {"query": SELECTOR}, "not supported as an instant query type"),
    ("query", {}, "the parameter query is missing"),
    ("query", {"query": "1", "time": "soon"}, "time is 'soon'"),
    ("query_range", {"query": "{"}, "parse error at line 1, col 2"),
    ("query_range", {"query": SELECTOR, "limit": "6000"}, "max entries limit"),
    ("query_range", {"query": SELECTOR, "direction": "up"}, "direction"),
    ("query_range", {"query": "vector(1)", "start": "0", "end": "4000000000", "step": "1"}, "11000"),
    ("query_range", {"query": SELECTOR, "start": "20", "end": "10"}, "end timestamp"),
    ("query_range", {"query": "vector(1)", "step": "-1"}, "step"),
    ("series", {"match[]": "rate({}[1m])"}, "query of lines"),
    ("index/volume", {"query": SELECTOR + " | json"}, "selector and line filters only"),
    ("label/x/values", {"query": "nope"}, "unknown function"),
]  # fmt: skip


@pytest.mark.parametrize(("path", "fields", "message"), REFUSED, ids=lambda value: str(value)[:40])
def test_errors_have_a_sentence(
    there: Served, path: str, fields: dict[str, str], message: str
) -> None:
    said = ask(there, path, **fields)
    assert said.status == 400
    assert said.json["status"] == "error"
    assert message in said.json["message"]


def test_unknown_paths_are_json(there: Served) -> None:
    said = ask(there, "rules")
    assert said.status == 404
    assert "there is no" in said.json["message"]
    assert there.ask("DELETE", f"{API}/labels").status == 405


def put_line(there: Served, number: int, text: str) -> None:
    connection = http.client.HTTPConnection(
        "127.0.0.1", there.rooms.otlp.http_port, timeout=ANSWER_S
    )
    connection.request(
        "POST",
        "/v1/logs",
        logs(log_record(number, event_name=text)),
        {"Content-Type": "application/x-protobuf"},
    )
    assert connection.getresponse().status == 200
    connection.close()


def messages(socket: Any) -> Iterator[dict[str, Any]]:
    while True:
        yield json.loads(socket.recv(timeout=ANSWER_S))


def test_tail_sends_the_last_lines_then_new_ones(there: Served, times: dict[str, str]) -> None:
    """Each line once, over a WebSocket; a ping is answered, and the end is clean."""
    query = urlencode({"query": ANY, "start": times["start"], "limit": "2"})
    with connect(f"ws://127.0.0.1:{there.port}{API}/tail?{query}") as socket:
        feed = messages(socket)
        past = [entry for stream in next(feed)["streams"] for entry in stream["values"]]
        assert len(past) == 2
        assert socket.ping().wait(ANSWER_S)
        socket.send("ignored")
        put_line(there, 901, "tail-one")
        put_line(there, 902, "tail-two")
        seen: list[str] = []
        while len(seen) < 2:
            seen += [stream["stream"]["event_name"] for stream in next(feed)["streams"]]
        assert seen == ["tail-one", "tail-two"]
    assert socket.close_code == 1000


def test_tail_filters_lines(there: Served) -> None:
    """New lines go through the whole pipeline."""
    query = urlencode({"query": '{event_name=~"wanted.*"} | line_format "{{.event_name}}!"'})
    with connect(f"ws://127.0.0.1:{there.port}{API}/tail?{query}") as socket:
        put_line(there, 903, "other")
        put_line(there, 904, "wanted-1")
        assert next(messages(socket))["streams"][0]["values"][0][1] == "wanted-1!"


def test_tail_needs_a_query_and_a_websocket(there: Served) -> None:
    with pytest.raises(InvalidStatus) as refused:
        connect(f"ws://127.0.0.1:{there.port}{API}/tail?query=%7B")
    assert refused.value.response.status_code == 400
    assert b"parse error" in refused.value.response.body
    assert ask(there, "tail", query=ANY).status == 426
    offered = {"Connection": "Upgrade", "Upgrade": "websocket", "Sec-WebSocket-Version": "13"}
    assert ask(there, "tail", {**offered, "Sec-WebSocket-Key": "short"}, query=ANY).status == 426
    key = {"Sec-WebSocket-Key": "dGhlIHNhbXBsZSBub25jZQ=="}
    assert ask(there, "labels", {**offered, **key}).status == 200
