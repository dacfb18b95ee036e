"""Dashboards: durable files, reported if broken, never overwritten by a stale client."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from frazil.disk import Disk, RealDisk
from frazil.errors import Conflict, FrazilError, Malformed, TooLarge, Unavailable
from frazil.httpd import HttpError
from frazil.model import Rand
from frazil.serve.saved import files as saved_files
from frazil.serve.saved.dashboard import (
    COLUMNS,
    Dashboard,
    Panel,
    PanelLogs,
    PanelMetric,
    Variable,
)
from frazil.serve.saved.files import SavedFiles, content_of, text_of
from tests.serve.served import Said, Served, served
from tests.sim.disk import Faults, PowerCut, SimDisk

EMPTY = {"format": 1, "title": "Shop"}
PANEL = {"id": "a", "kind": "table", "x": 0, "y": 0, "w": 6, "h": 8, "sql": "SELECT 1"}


@pytest.fixture(scope="module")
def there(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    with served(tmp_path_factory.mktemp("dashboards") / "data") as opened:
        yield opened


def dashboards_in(disk: Disk) -> SavedFiles[Dashboard]:
    return SavedFiles(disk, "dashboards", "dashboard", Dashboard)


def put(there: Served, name: str, body: Any, etag: str | None = None) -> Said:
    query = "" if etag is None else f"?etag={etag}"
    return there.ask("PUT", f"/api/v1/dashboards/{quote(name, safe='')}{query}", body)


def folder(there: Served) -> Path:
    return Path(there.rooms.data) / "dashboards"


def test_a_stored_dashboard_is_returned_and_listed(there: Served) -> None:
    stored = put(there, "shop", {**EMPTY, "panels": [PANEL]})
    assert stored.status == 200
    assert stored.json["dashboard"] == {**EMPTY, "panels": [PANEL]}
    assert there.ask("GET", "/api/v1/dashboards/shop").json == stored.json
    (listed,) = there.ask("GET", "/api/v1/dashboards").json["dashboards"]
    assert listed["title"] == "Shop"
    assert listed["panel_count"] == 1
    assert listed["etag"] == stored.json["etag"]
    deleted = there.ask("DELETE", f"/api/v1/dashboards/shop?etag={stored.json['etag']}")
    assert deleted.json == stored.json
    assert there.ask("GET", "/api/v1/dashboards/shop").status == 404
    assert there.ask("DELETE", "/api/v1/dashboards/shop").status == 404
    assert there.ask("GET", "/api/v1/dashboards").json == {"dashboards": []}


def test_a_dashboard_file_is_readable(there: Served) -> None:
    """Sorted, indented, without what goes without saying; the same text for the same dashboard."""
    put(there, "people", {**EMPTY, "description": ""})
    text = (folder(there) / "people.json").read_text()
    assert text == '{\n  "format": 1,\n  "title": "Shop"\n}\n'


def test_a_stale_etag_is_a_conflict(there: Served) -> None:
    first = put(there, "seen", EMPTY).json["etag"]
    again = put(there, "seen", EMPTY)
    assert again.status == 409
    assert "already" in again.message
    second = put(there, "seen", {**EMPTY, "title": "Two"}, first).json["etag"]
    assert second != first
    late = put(there, "seen", {**EMPTY, "title": "Three"}, first)
    assert late.status == 409
    assert "changed in the meantime" in late.message
    assert there.ask("DELETE", f"/api/v1/dashboards/seen?etag={first}").status == 409
    assert there.ask("GET", "/api/v1/dashboards/seen").json["dashboard"]["title"] == "Two"
    (folder(there) / "seen.json").unlink()
    gone = put(there, "seen", EMPTY, second)
    assert gone.status == 409
    assert "deleted in the meantime" in gone.message


def test_one_of_many_concurrent_writers_wins(tmp_path: Path) -> None:
    """All send the same etag; the others get a conflict."""
    files = dashboards_in(RealDisk(tmp_path))
    seen = files.put("a", Dashboard(format=1, title="0"), None).etag
    outcomes: list[str] = []

    def write(number: int) -> None:
        try:
            files.put("a", Dashboard(format=1, title=f"{number}"), seen)
            outcomes.append(f"{number}")
        except Conflict:
            outcomes.append("")

    threads = [threading.Thread(target=write, args=(number,)) for number in range(1, 9)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    (winner,) = [outcome for outcome in outcomes if outcome]
    found = files.get("a").content
    assert found is not None
    assert found.title == winner


@pytest.mark.parametrize(
    ("text", "why"),
    [
        (b"", "not JSON"),
        (b"{", "not JSON"),
        (b"\xff", "not JSON"),
        (b"[" * 100_000, "not a dashboard"),
        (b"[]", "not a dashboard"),
        (b'{"format": 2, "title": "x"}', "not a dashboard"),
        (b'{"format": 1, "title": "x", "panles": []}', "panles"),
        (b'{"format": 1, "title": "x"' + b" " * saved_files.FILE_BYTES_MAX + b"}", "bytes"),
    ],
)
def test_a_broken_file_is_reported(there: Served, text: bytes, why: str) -> None:
    """It is listed, it is given with its error, and it can be replaced and deleted."""
    folder(there).mkdir(exist_ok=True)
    (folder(there) / "broken.json").write_bytes(text)
    listed = there.ask("GET", "/api/v1/dashboards").json["dashboards"]
    (broken,) = [each for each in listed if each["name"] == "broken"]
    assert why in broken["error"]
    found = there.ask("GET", "/api/v1/dashboards/broken")
    assert found.status == 200
    assert found.json["dashboard"] is None
    assert why in found.json["error"]
    assert put(there, "broken", EMPTY, found.json["etag"]).status == 200
    assert there.ask("DELETE", "/api/v1/dashboards/broken").status == 200


def test_folders_are_reported_and_other_files_ignored(there: Served) -> None:
    folder(there).mkdir(exist_ok=True)
    (folder(there) / "odd.json").mkdir()
    (folder(there) / "README.md").write_text("mine")
    (folder(there) / "Upper.json").write_text("mine")
    listed = there.ask("GET", "/api/v1/dashboards").json["dashboards"]
    names = {each["name"]: each["error"] for each in listed}
    assert "directory" in names["odd"]
    assert "README" not in names
    assert "Upper" not in names
    found = there.ask("GET", "/api/v1/dashboards/odd").json
    assert put(there, "odd", EMPTY, found["etag"]).status == 503
    (folder(there) / "odd.json").rmdir()


NAMES = st.one_of(
    st.text(min_size=1, max_size=80),
    st.text("abz09_-.A/\\\n", min_size=1, max_size=70),
    st.sampled_from(["..", ".", "a\n", "../a", "a.json", "con", "-a", "_a", "a" * 65, "ä", "%2e"]),
)


@settings(max_examples=150, deadline=None)
@given(NAMES)
def test_invalid_names_are_refused(there: Served, name: str) -> None:
    """Never anything else, whatever a name looks like."""
    before = set(Path(there.rooms.data).rglob("*.json"))
    try:
        said = put(there, name, EMPTY)
    except UnicodeEncodeError:  # no text that can be sent
        return
    made = set(Path(there.rooms.data).rglob("*.json")) - before
    if said.status == 200:
        assert made == {folder(there) / f"{name}.json"}
        assert there.ask("DELETE", f"/api/v1/dashboards/{name}").status == 200
    else:
        assert said.status in (400, 404)
        assert said.message
        assert not made


ANYTHING = st.recursive(
    st.none() | st.booleans() | st.integers(-5, 20) | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)
KNOWN = st.sampled_from(["format", "title", "description", "variables", "panels"])
FIELDS = st.sampled_from(["id", "title", "kind", "x", "y", "w", "h", "metric", "sql", "logs"])
BODIES = st.one_of(
    ANYTHING,
    st.dictionaries(KNOWN, ANYTHING).map(lambda some: {**EMPTY, **some}),
    st.lists(st.dictionaries(FIELDS, ANYTHING).map(lambda some: {**PANEL, **some}), max_size=3).map(
        lambda panels: {**EMPTY, "panels": panels}
    ),
)


@settings(max_examples=150, deadline=None)
@given(BODIES)
def test_invalid_bodies_are_refused(there: Served, body: Any) -> None:
    """What is stored is what was sent; everything else is said to be wrong."""
    try:
        sent = msgspec.json.encode(body)
    except UnicodeEncodeError:  # no text that can be sent
        return
    assert put(there, "any", sent).status == 415
    headers = {"Content-Type": "application/json"}
    said = there.ask("PUT", "/api/v1/dashboards/any", sent, headers)
    if said.status == 200:
        assert said.json["dashboard"]["title"] == body["title"]
        assert there.ask("DELETE", "/api/v1/dashboards/any").status == 200
    else:
        assert said.status == 400
        assert said.message


SHORT = st.text(st.characters(codec="utf-8"), max_size=20)
LISTS = st.lists(SHORT, max_size=3).map(tuple)
METRICS = st.builds(
    PanelMetric,
    name=SHORT,
    type=SHORT,
    aggregates=st.lists(SHORT, min_size=1, max_size=3).map(tuple),
    by=LISTS,
    filter=LISTS,
    exclude=LISTS,
    step=SHORT,
)
LOGS = st.builds(PanelLogs, search=SHORT, severity=SHORT, filter=LISTS, exclude=LISTS)


@st.composite
def panels(draw: st.DrawFn) -> Panel:
    x = draw(st.integers(0, COLUMNS - 1))
    return Panel(
        id=draw(st.text("abc019", min_size=1, max_size=16)),
        title=draw(SHORT),
        kind=draw(st.sampled_from(["series", "stat", "table", "logs", "top"])),
        x=x,
        y=draw(st.integers(0, 100)),
        w=draw(st.integers(1, COLUMNS - x)),
        h=draw(st.integers(1, 60)),
        metric=draw(st.none() | METRICS),
        sql=draw(SHORT),
        logs=draw(st.none() | LOGS),
        unit=draw(SHORT),
        look=draw(st.sampled_from(["lines", "stacked", "bars"])),
        reduce=draw(st.sampled_from(["last", "avg", "min", "max", "sum"])),
        limit=draw(st.integers(1, 1000)),
    )


VARIABLES = st.builds(
    Variable,
    name=st.from_regex(r"[a-z][a-z0-9_]{0,8}", fullmatch=True),
    label=SHORT,
    kind=st.sampled_from(["label", "sql", "list"]),
    metric=SHORT,
    of=SHORT,
    sql=SHORT,
    values=LISTS,
    many=st.booleans(),
    chosen=LISTS,
)
DASHBOARDS = st.builds(
    Dashboard,
    format=st.just(1),
    title=SHORT,
    description=SHORT,
    variables=st.lists(VARIABLES, max_size=3, unique_by=lambda one: one.name).map(tuple),
    panels=st.lists(panels(), max_size=4, unique_by=lambda one: one.id).map(tuple),
)


@given(DASHBOARDS)
def test_a_dashboard_round_trips(dashboard: Dashboard) -> None:
    text = text_of(dashboard)
    assert content_of(text, Dashboard, "dashboard") == dashboard
    assert text_of(content_of(text, Dashboard, "dashboard")) == text


@pytest.mark.parametrize(
    ("body", "why"),
    [
        ({**EMPTY, "panels": [{**PANEL, "x": 7}]}, "columns"),
        ({**EMPTY, "panels": [PANEL, PANEL]}, "named a"),
        ({**EMPTY, "variables": [{"name": "v", "kind": "list"}] * 2}, "named v"),
        ({**EMPTY, "title": "x" * 201}, "200"),
        ({**EMPTY, "panels": [{**PANEL, "id": f"p{n}"} for n in range(101)]}, "100"),
    ],
)
def test_rules_across_fields_are_checked(there: Served, body: Any, why: str) -> None:
    said = put(there, "wrong", body)
    assert said.status == 400
    assert why in said.message


def test_dashboards_are_limited(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    files = dashboards_in(RealDisk(tmp_path))
    sql = "x" * 60_000
    large = Dashboard(
        format=1,
        title="",
        panels=tuple(
            Panel(id=f"p{n}", kind="table", x=0, y=n, w=1, h=1, sql=sql) for n in range(10)
        ),
    )
    with pytest.raises(TooLarge, match="bytes"):
        files.put("large", large, None)
    monkeypatch.setattr(saved_files, "COUNT_MAX", 2)
    small = Dashboard(format=1, title="")
    files.put("a", small, None)
    seen = files.put("b", small, None).etag
    with pytest.raises(TooLarge, match="limit"):
        files.put("c", small, None)
    files.put("b", large.__class__(format=1, title="again"), seen)


def test_a_power_loss_leaves_the_old_or_new_dashboard() -> None:
    """What was answered is there; what was not is there whole or not at all."""

    def write(disk: SimDisk, answered: list[str]) -> None:
        files = dashboards_in(disk)
        seen = None
        for title in ("one", "two", "three"):
            seen = files.put("a", Dashboard(format=1, title=title), seen).etag
            answered.append(title)
        files.delete("a", seen)
        answered.append("")

    quiet = SimDisk()
    write(quiet, [])
    titles = [None, "one", "two", "three", None]
    for crash_at in range(1, quiet.calls + 1):
        answered: list[str] = []
        disk = SimDisk(faults=Faults(crash_at=crash_at), rand=Rand(crash_at))
        with pytest.raises(PowerCut):
            write(disk, answered)
        after = dashboards_in(disk.crash(Rand(crash_at)))
        found = after.all()
        assert [each.error for each in found] in ([], [None])
        title = found[0].content.title if found and found[0].content else None
        assert title in titles[len(answered) : len(answered) + 2]


def test_a_full_disk_is_reported(tmp_path: Path) -> None:
    files = dashboards_in(SimDisk(faults=Faults(capacity_bytes=10)))
    with pytest.raises(Unavailable, match="full"):
        files.put("a", Dashboard(format=1, title="x"), None)
    assert files.all() == []


def test_the_store_checks_names_too(tmp_path: Path) -> None:
    files = dashboards_in(RealDisk(tmp_path))
    for name in ("../a", "a\n", "", "A"):
        with pytest.raises(Malformed):
            files.get(name)
    with pytest.raises(HttpError):
        files.get("a")
    assert issubclass(Malformed, FrazilError)


@pytest.mark.parametrize("method", ["PUT", "DELETE"])
def test_foreign_pages_cannot_change_dashboards(there: Served, method: str) -> None:
    path = "/api/v1/dashboards/strange"
    said = there.ask(method, path, EMPTY, {"Origin": "https://stranger.example"})
    assert said.status == 403
    assert there.ask("GET", path).status == 404
    asked = {"Access-Control-Request-Method": method}
    refused = there.ask("OPTIONS", path, None, {**asked, "Origin": "https://stranger.example"})
    assert refused.status == 403
    allowed = there.ask("OPTIONS", path, None, {**asked, "Origin": "http://localhost:5173"})
    assert method in allowed.headers["access-control-allow-methods"]


def test_a_body_in_the_query_string_is_refused(there: Served) -> None:
    said = there.ask("PUT", "/api/v1/dashboards/twice?body=null", EMPTY)
    assert said.status == 400
    assert there.ask("PUT", "/api/v1/dashboards/twice?body=null").status == 415
