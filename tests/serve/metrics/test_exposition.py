"""The /metrics page: read by the Prometheus client, and documented in docs/metrics.md."""

from __future__ import annotations

import importlib
import re
from collections.abc import Callable, Iterable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from prometheus_client.metrics_core import Metric
from prometheus_client.openmetrics import parser as openmetrics
from prometheus_client.parser import text_string_to_metric_families

from frazil.serve import NodeContext
from frazil.serve.metrics.exposition import (
    OPENMETRICS,
    PROMETHEUS,
    exposition,
    families,
    openmetrics_text,
    prometheus_text,
)
from frazil.status import Family, Point, gauge, process_info
from tests.conformance.cases import log, logs
from tests.conformance.clients import PROTOBUF, send_http
from tests.house.sources import ROOT, house
from tests.serve.open_rooms import open_rooms

PAGE = ROOT / "docs" / "metrics.md"
ROW = re.compile(r"^\| `(?P<name>[a-z0-9_]+)` \| (?P<kind>\w+) \| (?P<help>.+) \|$", re.M)
Parse = Callable[[str], Iterable[Metric]]
PARSERS: list[tuple[str, str, Parse]] = [
    ("", PROMETHEUS, text_string_to_metric_families),
    (
        "application/openmetrics-text;version=1.0.0,*/*;q=0.1",
        OPENMETRICS,
        openmetrics.text_string_to_metric_families,
    ),
]


def import_all() -> None:
    """Import every module that declares a metric."""
    for source in house():
        if re.search(r"^[A-Z_]+ = (Counter|Gauge|Histogram)\(", source.text, re.M):
            importlib.import_module(source.module)


def all_families(rooms: NodeContext) -> list[Family]:
    import_all()
    return list(families(rooms))


@pytest.mark.parametrize(("accept", "content_type", "parse"), PARSERS)
def test_prometheus_client_parses_every_family(
    accept: str, content_type: str, parse: Parse, tmp_path: Path
) -> None:
    with open_rooms(tmp_path, has_lake=True) as rooms:
        body = logs(log(1), log(2), log(3))
        send_http(rooms.otlp.http_port, "/v1/logs", body, {"Content-Type": PROTOBUF})
        expected = {family.name for family in all_families(rooms)}
        found_type, text = exposition(rooms, accept)
        assert found_type == content_type
        found = {metric.name: metric for metric in parse(text.decode())}
        assert {name.removesuffix("_total").removesuffix("_info") for name in found} >= {
            name for name in expected if name != "frazil_build"
        }
        accepted = {
            sample.labels["transport"]: sample.value
            for sample in found["frazil_ingest_accepted_records"].samples
            if sample.name.endswith("_total") and sample.labels["signal"] == "logs"
        }
        assert accepted["http"] >= 3
        assert found["frazil_ingest_ack_seconds"].type == "histogram"
        (watermark,) = (
            s for s in found["frazil_log_watermark"].samples if s.labels["topic"] == "otlp_logs"
        )
        assert watermark.value == 1


def test_the_docs_list_every_metric(tmp_path: Path) -> None:
    """Name, kind and help text in docs/metrics.md equal those of the code."""
    with open_rooms(tmp_path, has_lake=True) as rooms:
        code = {(f.full_name, f.kind, f.help_text) for f in all_families(rooms)}
    page = {(m["name"], m["kind"], m["help"]) for m in ROW.finditer(PAGE.read_text())}
    assert code - page == set(), "not on the page"
    assert page - code == set(), "only on the page"


def test_metric_names_are_unique_and_valid(tmp_path: Path) -> None:
    with open_rooms(tmp_path, has_lake=True) as rooms:
        names = [family.name for family in all_families(rooms)]
    assert len(names) == len(set(names))
    assert all(re.fullmatch(r"[a-z_][a-z0-9_]*", name) for name in names)
    assert not [name for name in names if name.endswith("_total")]


@given(st.text(), st.text())
def test_labels_and_help_texts_are_escaped(label: str, help_text: str) -> None:
    family = gauge("a_b", help_text, [Point(value=1.5, labels=(("x", label),))])
    for text, parse in (
        (prometheus_text([family]), text_string_to_metric_families),
        (openmetrics_text([family]), openmetrics.text_string_to_metric_families),
    ):
        (found,) = parse(text)
        (sample,) = found.samples
        assert sample.labels == {"x": label}
        assert sample.value == 1.5


def test_process_info_is_of_this_process() -> None:
    info = process_info()
    assert 0 < info.resident_bytes < info.virtual_bytes
    assert 0 < info.open_fds <= info.fds_max
    assert info.cpu_s > 0
