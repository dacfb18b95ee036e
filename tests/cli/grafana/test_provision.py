"""`frazil grafana provision`: files that Grafana can read, whose queries and links are right."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import promql_parser
import pytest
import yaml

from frazil.cli import main
from tests.serve.metrics.test_exposition import PAGE, ROW

SOURCES = {"prometheus": "/prometheus", "loki": "", "tempo": "/tempo", "jaeger": "/jaeger"}
SOURCE_KEYS = {
    *("name", "uid", "type", "access", "url", "isDefault", "editable", "jsonData"),
    "secureJsonData",
}
VARIABLES = {"$__rate_interval": "1m", "$__range": "1h", "$service": ".+", "$job": ".+"}


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("grafana")
    flags = ["--url", "http://frazil:4320/", "--token-variable", "FRAZIL_TOKEN"]
    for _ in range(2):  # a second time replaces the files
        assert main(["grafana", "provision", "--out", str(folder), *flags]) == 0
    return folder


def expanded(value: Any) -> Any:
    """Return values as Grafana reads them: `$NAME` is a variable, `$$` a dollar."""
    if isinstance(value, dict):
        return {name: expanded(each) for name, each in value.items()}
    if isinstance(value, list):
        return [expanded(each) for each in value]
    if not isinstance(value, str):
        return value
    known = {"FRAZIL_TOKEN": "secret"}
    return re.sub(r"\$(\$|\w+)", lambda m: "$" if m[1] == "$" else known[m[1]], value)


def sources_of(folder: Path) -> dict[str, Any]:
    text = (folder / "provisioning/datasources/frazil.yaml").read_text()
    document = yaml.safe_load(text)
    assert document.keys() == {"apiVersion", "prune", "datasources"}
    return {source["type"]: expanded(source) for source in document["datasources"]}


def test_data_sources_and_their_links(written: Path) -> None:
    sources = sources_of(written)
    assert {kind: each["url"] for kind, each in sources.items()} == {
        kind: f"http://frazil:4320{path}" for kind, path in SOURCES.items()
    }
    for source in sources.values():
        assert source.keys() == SOURCE_KEYS
        assert source["secureJsonData"] == {"httpHeaderValue1": "Bearer secret"}
        assert source["jsonData"]["httpHeaderName1"] == "Authorization"
    uids = {source["uid"] for source in sources.values()}
    links = re.findall(r"'(?:datasourceUid)': '([^']*)'", str(sources))
    assert len(links) == 6
    assert set(links) <= uids
    (field,) = sources["loki"]["jsonData"]["derivedFields"]
    assert (field["matcherType"], field["matcherRegex"]) == ("label", "trace_id")
    assert field["url"] == "${__value.raw}"
    tempo = sources["tempo"]["jsonData"]
    assert tempo["streamingEnabled"] == {"search": False, "metrics": False}
    assert tempo["tracesToLogsV2"]["query"] == '{${__tags}} | trace_id="${__trace.traceId}"'
    assert "{$__tags}" in tempo["tracesToMetrics"]["queries"][0]["query"]
    (provider,) = yaml.safe_load((written / "provisioning/dashboards/frazil.yaml").read_text())[
        "providers"
    ]
    assert provider["options"]["path"] == str(written / "dashboards")


def dashboards_of(folder: Path) -> list[dict[str, Any]]:
    return [json.loads(path.read_text()) for path in sorted((folder / "dashboards").iterdir())]


def targets_of(dashboard: dict[str, Any], kind: str) -> Iterator[str]:
    for panel in dashboard["panels"]:
        for target in panel["targets"]:
            assert target["datasource"] == panel["datasource"]
            if target["datasource"]["type"] == kind:
                yield target["expr"]


def promql_of(folder: Path) -> list[str]:
    """Every PromQL of the dashboards, with values for its variables."""
    found = []
    for dashboard in dashboards_of(folder):
        for expr in targets_of(dashboard, "prometheus"):
            for name, value in VARIABLES.items():
                expr = expr.replace(name, value)
            found.append(expr)
    return found


def test_dashboards_are_whole(written: Path) -> None:
    dashboards = dashboards_of(written)
    assert [each["uid"] for each in dashboards] == [
        *("frazil-kafka-lake", "frazil-logs", "frazil-node", "frazil-red"),
    ]
    uids = {source["uid"] for source in sources_of(written).values()}
    for dashboard in dashboards:
        panels = dashboard["panels"]
        assert len({panel["id"] for panel in panels}) == len(panels)
        assert {panel["datasource"]["uid"] for panel in panels} <= uids
        cells = [
            (x, y)
            for panel in panels
            for place in [panel["gridPos"]]
            for x in range(place["x"], place["x"] + place["w"])
            for y in range(place["y"], place["y"] + place["h"])
        ]
        assert len(cells) == len(set(cells)), "panels overlap"
        assert max(x for x, _ in cells) < 24


def test_every_expression_parses_and_names_known_series(written: Path) -> None:
    known = {match["name"] for match in ROW.finditer(PAGE.read_text())}
    found = promql_of(written)
    assert len(found) > 40
    for expr in found:
        promql_parser.parse(expr)
        assert "$" not in expr
        for name in re.findall(r"\bfrazil_\w+|\bprocess_\w+", expr):
            assert name.removesuffix("_bucket") in known, name


def test_wrong_flags_say_what_to_do(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["grafana", "provision", "--out", str(tmp_path), "--url", "frazil:4320"]) == 2
    assert "use http://host:port" in capsys.readouterr().err
