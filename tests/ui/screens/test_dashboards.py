"""Dashboards: create, edit, arrange, store, import and export."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, Dialog, Locator, Page, Route, expect

from tests.clients.node import Node
from tests.ui.helpers.page import THEMES, Theme, accessibility_violations, open_page

DURATION = "http.server.request.duration"
EVIL = "<img src=x onerror=window.hacked=1>\u202e</script>"


@pytest.fixture(autouse=True)
def no_dashboards(node: Node) -> Iterator[None]:
    """Delete all dashboards after each test."""
    yield
    for path in (node.folder / "dashboards").glob("*"):
        path.unlink()


def stat(number: int, **more: Any) -> dict[str, Any]:
    return {
        "id": f"p{number}",
        "title": f"Panel {number}",
        "kind": "stat",
        "x": 0,
        "y": 4 * number,
        "w": 4,
        "h": 4,
        "sql": f"SELECT {number} AS n",
        **more,
    }


def store(node: Node, name: str, *panels: dict[str, Any], **more: Any) -> None:
    """Write a dashboard file, as a user would by hand."""
    folder = node.folder / "dashboards"
    folder.mkdir(exist_ok=True)
    dashboard = {"format": 1, "title": name.title(), "panels": panels, **more}
    (folder / f"{name}.json").write_text(json.dumps(dashboard))


def file_of(node: Node, name: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((node.folder / "dashboards" / f"{name}.json").read_text())
    return found


def place_of(node: Node, name: str, panel: str) -> tuple[int, int, int, int]:
    (found,) = [each for each in file_of(node, name)["panels"] if each["id"] == panel]
    return found["x"], found["y"], found["w"], found["h"]


def panel(page: Page, title: str) -> Locator:
    return page.get_by_role("region", name=title, exact=True)


def save(page: Page) -> None:
    page.get_by_role("button", name="Save", exact=True).click()
    expect(page.get_by_text("Unsaved changes")).to_be_hidden()


def test_a_new_dashboard_starts_from_a_template(page: Page, node: Node) -> None:
    """With panels of every kind, over metrics, SQL and logs."""
    page.goto("/dashboards")
    expect(page.get_by_text("No dashboards yet.")).to_be_visible()
    page.get_by_role("button", name="New dashboard").first.click()
    page.get_by_label("Title").fill("My services")
    page.get_by_label("Services").check()
    page.get_by_role("button", name="Create").click()
    expect(page).to_have_url(re.compile("/dashboard/my-services"))
    lines = panel(page, "Requests per second").get_by_role("group", name="Series")
    expect(lines.get_by_role("row").nth(5)).to_be_visible()
    expect(panel(page, "Operations").get_by_role("row").nth(3)).to_contain_text(re.compile(r"\d"))
    expect(panel(page, "Slowest operations by p95 latency").get_by_role("listitem")).to_have_count(
        10
    )
    expect(panel(page, "Error logs").get_by_role("link").first).to_be_visible()
    assert file_of(node, "my-services")["title"] == "My services"
    page.goto("/dashboards")
    expect(page.get_by_role("row", name=re.compile("My services"))).to_contain_text("6")


def test_the_shop_template_shows_numbers(page: Page) -> None:
    page.goto("/dashboards")
    page.get_by_role("button", name="New dashboard").first.click()
    page.get_by_label("Shop").check()
    page.get_by_role("button", name="Create").click()
    for title in ("Orders", "Revenue", "Open carts"):
        expect(panel(page, title).locator("b")).to_have_text(re.compile(r"\d"))
        expect(panel(page, title).locator("path")).to_have_attribute("d", re.compile("^M"))
    expect(panel(page, "Request duration")).to_contain_text("p99")


def test_a_panel_is_added_with_a_preview_and_saved(page: Page, node: Node) -> None:
    store(node, "mine", stat(1))
    page.goto("/dashboard/mine?edit=1")
    page.get_by_role("button", name="Add panel").click()
    editor = page.get_by_role("dialog", name="Panel")
    metric = editor.get_by_role("combobox", name="Metric", exact=True)
    metric.fill(DURATION)
    metric.blur()
    expect(editor.get_by_role("group", name="Series").locator("tbody tr")).to_have_count(3)
    editor.get_by_role("button", name="rate", exact=True).click()
    editor.get_by_label("Group by a label").select_option("service_name")
    expect(editor.get_by_role("group", name="Series").locator("tbody tr")).to_have_count(5)
    editor.get_by_label("Title").fill("How often")
    editor.get_by_role("button", name="Apply").click()
    expect(panel(page, "How often")).to_be_visible()
    assert len(file_of(node, "mine")["panels"]) == 1
    save(page)
    added = file_of(node, "mine")["panels"][1]
    assert added["metric"] == {
        "name": DURATION,
        "aggregates": ["rate"],
        "by": ["service_name"],
    }
    page.reload()
    expect(panel(page, "How often")).to_be_visible()


def test_a_metric_can_be_typed_before_the_metric_list_is_loaded(page: Page, node: Node) -> None:
    """The default aggregates apply once the kind is known."""
    held: list[Route] = []
    store(node, "mine", stat(1))
    page.route(re.compile(r"/api/v1/metrics\?"), lambda route: held.append(route))
    page.goto("/dashboard/mine?edit=1")
    page.get_by_role("button", name="Add panel").click()
    editor = page.get_by_role("dialog", name="Panel")
    metric = editor.get_by_role("combobox", name="Metric", exact=True)
    metric.fill(DURATION)
    metric.blur()
    expect(editor.get_by_role("button", name="avg", exact=True)).to_be_visible()
    for route in held:
        route.continue_()
    expect(editor.get_by_role("group", name="Series").locator("tbody tr")).to_have_count(3)
    aggregates = editor.get_by_role("group", name="Aggregate")
    expect(aggregates.get_by_role("button", pressed=True)).to_have_text(["p50", "p90", "p99"])


def test_sql_is_shown_as_any_panel_kind_with_its_errors(browser: Browser, node: Node) -> None:
    store(node, "sql", stat(1))
    with open_page(browser, node.url, allowed=("400",)) as page:
        page.goto("/dashboard/sql?edit=1")
        panel(page, "Panel 1").get_by_role("button", name="Actions").click()
        panel(page, "Panel 1").get_by_role("button", name="Edit", exact=True).click()
        editor = page.get_by_role("dialog", name="Panel")
        editor.get_by_label("Panel type").select_option("table")
        editor.get_by_label("SQL:").fill("SELECT bodi FROM logs")
        editor.get_by_role("button", name="Run query").click()
        expect(editor.get_by_role("alert")).to_contain_text("did you mean body?")
        counted = "SELECT service_name, count(*) AS n FROM spans WHERE time >= $from GROUP BY 1"
        editor.get_by_label("SQL:").fill(counted)
        editor.get_by_role("button", name="Run query").click()
        expect(editor.get_by_role("row", name=re.compile("checkout"))).to_be_visible()
        editor.get_by_label("Panel type").select_option("top")
        expect(editor.get_by_role("listitem").first).to_contain_text(re.compile(r"\d"))
        editor.get_by_role("button", name="Apply").click()
        save(page)
    assert file_of(node, "sql")["panels"][0]["sql"] == counted


def test_panels_are_moved_and_resized_by_keyboard(page: Page, node: Node) -> None:
    store(node, "grid", stat(0), stat(1))
    page.goto("/dashboard/grid?edit=1")
    handle = page.get_by_role("button", name="Move Panel 0")
    handle.focus()
    page.keyboard.press("ArrowDown")
    page.keyboard.press("Shift+ArrowRight")
    expect(handle).to_be_focused()
    save(page)
    assert place_of(node, "grid", "p1")[:2] == (0, 0)
    assert place_of(node, "grid", "p0") == (0, 4, 5, 4)
    handle.focus()
    page.keyboard.press("ArrowRight")
    save(page)
    assert place_of(node, "grid", "p0")[0] == 1


def test_panels_are_moved_and_resized_by_dragging(page: Page, node: Node) -> None:
    store(node, "grid", stat(0), stat(1))
    page.goto("/dashboard/grid?edit=1")
    drag(page, page.get_by_role("button", name="Move Panel 1"), 600, -200)
    expect(page.get_by_text("Unsaved changes")).to_be_visible()
    drag(page, panel(page, "Panel 0").locator(".size"), 180, 80)
    save(page)
    x, y, w, h = place_of(node, "grid", "p1")
    assert (y, w, h) == (0, 4, 4)
    assert x > 4
    assert place_of(node, "grid", "p0") == (0, 0, 6, 6)


def drag(page: Page, handle: Locator, across: int, down: int) -> None:
    box = handle.bounding_box()
    assert box is not None
    x, y = box["x"] + box["width"] / 2, box["y"] + box["height"] / 2
    page.mouse.move(x, y)
    page.mouse.down()
    page.mouse.move(x + across, y + down, steps=5)
    page.mouse.up()


def test_a_variable_filters_panels_and_is_kept_in_the_address(page: Page, node: Node) -> None:
    variable = {"name": "service", "kind": "label", "metric": DURATION, "of": "service_name"}
    metric = {
        "name": DURATION,
        "aggregates": ["rate"],
        "by": ["service_name"],
        "filter": ["service_name=$service"],
    }
    asked = stat(1, kind="series", metric=metric, sql="", title="Of $service", h=9)
    listed = stat(
        9,
        kind="table",
        y=9,
        sql="SELECT DISTINCT service_name FROM spans WHERE service_name IN ($service)",
    )
    store(node, "vars", asked, listed, variables=[{**variable, "many": True}])
    page.goto("/dashboard/vars")
    lines = panel(page, "Of all").get_by_role("group", name="Series").locator("tbody tr")
    expect(lines).to_have_count(5)
    page.get_by_text("service all").click()
    page.get_by_role("checkbox", name="checkout").check()
    page.get_by_role("checkbox", name="gateway").check()
    expect(page).to_have_url(re.compile("var=service%3Dcheckout&var=service%3Dgateway"))
    chosen = panel(page, "Of checkout, gateway").get_by_role("group", name="Series")
    expect(chosen.locator("tbody tr")).to_have_count(2)
    expect(panel(page, "Panel 9").locator("tbody tr")).to_have_count(2)
    page.go_back()
    expect(panel(page, "Of checkout")).to_be_visible()


def test_a_conflicting_save_can_be_saved_as_a_copy(page: Page, node: Node) -> None:
    store(node, "both", stat(0), stat(1))
    with open_page(page.context.browser or pytest.fail(), node.url, allowed=("409",)) as second:
        second.goto("/dashboard/both?edit=1")
        second.get_by_role("button", name="Move Panel 0").press("ArrowRight")
        store(node, "both", stat(7))
        second.get_by_role("button", name="Save", exact=True).click()
        expect(second.get_by_role("status")).to_contain_text("changed in the meantime")
        second.get_by_role("button", name="Save a copy").click()
        expect(second).to_have_url(re.compile("/dashboard/both-copy"))
        expect(panel(second, "Panel 0")).to_be_visible()
    assert [each["id"] for each in file_of(node, "both")["panels"]] == ["p7"]
    assert place_of(node, "both-copy", "p0")[0] == 1


def test_unsaved_changes_survive_navigation_and_can_be_discarded(page: Page, node: Node) -> None:
    store(node, "kept", stat(0))
    page.goto("/dashboard/kept?edit=1")
    page.get_by_role("button", name="Move Panel 0").press("ArrowRight")
    page.get_by_role("link", name="Dashboards", exact=True).first.click()
    page.get_by_role("link", name="Kept").click()
    expect(page.get_by_text("Unsaved changes")).to_be_visible()
    page.get_by_role("button", name="Discard").click()
    expect(page.get_by_text("Unsaved changes")).to_be_hidden()
    assert place_of(node, "kept", "p0")[0] == 0


def test_dashboards_are_exported_and_imported_as_files(
    page: Page, node: Node, tmp_path: Path
) -> None:
    store(node, "given", stat(0))
    page.goto("/dashboards")
    with page.expect_download() as downloading:
        page.get_by_role("button", name="Export Given").click()
    path = tmp_path / "given.json"
    downloading.value.save_as(path)
    assert json.loads(path.read_text()) == file_of(node, "given")
    page.get_by_label("Import file").set_input_files(path)
    expect(page).to_have_url(re.compile("/dashboard/given-2"))
    expect(panel(page, "Panel 0")).to_be_visible()
    written = (node.folder / "dashboards" / "given-2.json").read_text()
    assert written == path.read_text()
    path.write_text('{"format": 1, "title": "x", "panles": []}')
    page.goto("/dashboards")
    page.get_by_label("Import file").set_input_files(path)
    expect(page.get_by_role("alert")).to_contain_text("no field panles")


def test_a_dashboard_is_duplicated_deleted_and_restored(page: Page, node: Node) -> None:
    store(node, "one", stat(0))
    page.goto("/dashboards")
    page.get_by_role("button", name="Duplicate One").click()
    expect(page.get_by_role("link", name="One (copy)")).to_be_visible()
    page.get_by_role("button", name="Delete One", exact=True).click()
    expect(page.get_by_role("link", name="One", exact=True)).to_be_hidden()
    page.get_by_role("button", name="Undo").click()
    expect(page.get_by_role("link", name="One", exact=True)).to_be_visible()
    assert file_of(node, "one")["panels"][0]["id"] == "p0"


def test_a_broken_file_is_reported_and_can_be_deleted(page: Page, node: Node) -> None:
    store(node, "broken")
    path = node.folder / "dashboards" / "broken.json"
    path.write_text('{"format": 1')
    page.goto("/dashboards")
    expect(page.get_by_role("row", name=re.compile("broken.json"))).to_contain_text("not JSON")
    page.get_by_role("link", name="broken").click()
    expect(page.get_by_role("alert")).to_contain_text("not JSON")
    page.go_back()
    page.on("dialog", Dialog.accept)
    page.get_by_role("button", name="Delete broken").click()
    expect(page.get_by_text("No dashboards yet.")).to_be_visible()
    assert not path.exists()


def test_the_json_can_be_edited(page: Page, node: Node) -> None:
    store(node, "text", stat(0))
    page.goto("/dashboard/text?edit=1")
    page.get_by_role("button", name="JSON").click()
    area = page.get_by_label("Dashboard JSON")
    area.fill("{")
    page.get_by_role("button", name="Apply").click()
    expect(page.get_by_role("alert")).to_contain_text("Not JSON")
    area.fill(json.dumps({"format": 1, "title": "Other", "panels": [stat(3), stat(4, y=12)]}))
    page.get_by_role("button", name="Apply").click()
    expect(page.get_by_role("heading", name="Other")).to_be_visible()
    save(page)
    assert place_of(node, "text", "p4")[1] == 4


def test_panels_query_only_when_visible(page: Page, node: Node) -> None:
    store(node, "long", *(stat(number, y=20 * number, h=20) for number in range(8)))
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.post_data or ""))
    page.goto("/dashboard/long")
    expect(panel(page, "Panel 0").locator("b")).to_have_text("0")
    assert not any("SELECT 7" in text for text in asked)
    panel(page, "Panel 7").scroll_into_view_if_needed()
    expect(panel(page, "Panel 7").locator("b")).to_have_text("7")
    assert any("SELECT 7" in text for text in asked)


def test_a_panel_opens_alone_and_links_to_sql(page: Page, node: Node) -> None:
    store(node, "alone", stat(0), stat(1))
    page.goto("/dashboard/alone")
    panel(page, "Panel 0").get_by_role("button", name="Actions").click()
    page.get_by_role("link", name="View panel").click()
    expect(panel(page, "Panel 1")).to_be_hidden()
    expect(page).to_have_url(re.compile("panel=p0"))
    panel(page, "Panel 0").get_by_role("button", name="Actions").click()
    page.get_by_role("link", name="Open in SQL").click()
    expect(page).to_have_url(re.compile(r"/sql\?q=SELECT\+0"))


def test_hostile_text_is_shown_as_text(page: Page, node: Node) -> None:
    rows = f"SELECT '{EVIL}' AS a, 1 AS n, TIMESTAMP '2026-01-01' AS t"
    kinds = ("table", "top", "stat", "series")
    panels = [
        stat(number, kind=kind, title=f"{EVIL} {number}", sql=rows)
        for number, kind in enumerate(kinds)
    ]
    variable = {"name": "v", "label": EVIL, "kind": "list", "values": [EVIL], "many": True}
    store(node, "evil", *panels, title=EVIL, description=EVIL, variables=[variable])
    page.goto("/dashboards")
    expect(page.get_by_role("link", name=re.compile("img src=x"))).to_be_visible()
    page.goto(f"/dashboard/evil?edit=1&var=v={EVIL}")
    shown = page.get_by_role("region", name=re.compile("img src=x"))
    expect(shown).to_have_count(4)
    expect(shown.first.get_by_role("cell").first).to_contain_text("⟨U+202E⟩")
    page.get_by_role("button", name="JSON").click()
    assert page.evaluate("window.hacked") is None
    assert page.locator("img[src=x]").count() == 0
    assert "\u202e" not in page.locator("main").inner_text()


@pytest.mark.parametrize("theme", THEMES)
def test_the_screen_is_accessible_and_fits_a_phone(
    browser: Browser, node: Node, theme: Theme
) -> None:
    variable = {"name": "v", "kind": "list", "values": ["a", "b"], "many": True}
    table = stat(1, kind="table", sql="SELECT service_name, count(*) FROM spans GROUP BY 1")
    logs = stat(2, kind="logs", logs={"severity": "ERROR"})
    lines = stat(3, kind="series", h=9, metric={"name": DURATION, "aggregates": ["p50", "p99"]})
    store(node, "seen", stat(0), table, logs, lines, variables=[variable])
    with open_page(browser, node.url, theme=theme) as page:
        page.goto("/dashboards")
        expect(page.get_by_role("link", name="Seen")).to_be_visible()
        assert accessibility_violations(page) == []
        page.goto("/dashboard/seen?edit=1")
        expect(panel(page, "Panel 1").locator("tbody tr").first).to_be_visible()
        expect(panel(page, "Panel 3").get_by_role("img")).to_be_visible()
        assert accessibility_violations(page) == []
        page.get_by_text("v all").click()
        assert accessibility_violations(page) == []
        panel(page, "Panel 0").get_by_role("button", name="Actions").click()
        assert accessibility_violations(page) == []
        panel(page, "Panel 0").get_by_role("button", name="Edit", exact=True).click()
        expect(page.get_by_role("dialog", name="Panel").locator("b")).to_be_visible()
        assert accessibility_violations(page) == []
        page.keyboard.press("Escape")
        page.get_by_role("button", name="Settings").click()
        assert accessibility_violations(page) == []
    with open_page(browser, node.url, theme=theme, width=360, height=740) as page:
        for address in ("/dashboards", "/dashboard/seen"):
            page.goto(address)
            expect(page.get_by_text("Seen").first).to_be_visible()
            assert page.evaluate("document.querySelector('main').scrollWidth") <= 360
