"""Metrics as Prometheus reads them: one name each, all on the page, parsed by its client."""

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

from frazil.metrics import Histogram
from frazil.serve import NodeContext
from frazil.serve.metrics.exposition import (
    OPENMETRICS,
    PROMETHEUS,
    exposition,
    families,
    openmetrics_text,
    prometheus_text,
)
from frazil.serve.metrics.families import Family, Point, gauge, quantile
from frazil.serve.metrics.process import process_facts
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
    """Have every metric of the house declared."""
    for source in house():
        if re.search(r"^[A-Z_]+ = (Counter|Gauge|Histogram)\(", source.text, re.M):
            importlib.import_module(source.module)


def shown_by(rooms: NodeContext) -> list[Family]:
    import_all()
    return list(families(rooms))


@pytest.mark.parametrize(("accept", "content_type", "parse"), PARSERS)
def test_prometheus_reads_all_of_it(
    accept: str, content_type: str, parse: Parse, tmp_path: Path
) -> None:
    """Both formats, each family once, and the values are those that we count."""
    with open_rooms(tmp_path, has_lake=True) as rooms:
        body = logs(log(1), log(2), log(3))
        send_http(rooms.otlp.http_port, "/v1/logs", body, {"Content-Type": PROTOBUF})
        wanted = {family.name for family in shown_by(rooms)}
        found_type, text = exposition(rooms, accept)
        assert found_type == content_type
        found = {metric.name: metric for metric in parse(text.decode())}
        assert {name.removesuffix("_total").removesuffix("_info") for name in found} >= {
            name for name in wanted if name != "frazil_build"
        }
        ours = {
            sample.labels["transport"]: sample.value
            for sample in found["frazil_ingest_accepted_records"].samples
            if sample.name.endswith("_total") and sample.labels["signal"] == "logs"
        }
        theirs = {
            sample.labels["transport"]: sample.value
            for sample in found["otelcol_receiver_accepted_log_records"].samples
            if sample.name.endswith("_total")
        }
        assert ours == theirs
        assert ours["http"] >= 3
        assert found["frazil_ingest_ack_seconds"].type == "histogram"
        (watermark,) = (
            s for s in found["frazil_log_watermark"].samples if s.labels["topic"] == "otlp_logs"
        )
        assert watermark.value == 1


def test_the_page_has_every_name(tmp_path: Path) -> None:
    """Name, kind and meaning in `docs/metrics.md` are those of the code, no more and no less."""
    with open_rooms(tmp_path, has_lake=True) as rooms:
        code = {(f.shown_name, f.kind, f.help_text) for f in shown_by(rooms)}
    page = {(m["name"], m["kind"], m["help"]) for m in ROW.finditer(PAGE.read_text())}
    assert code - page == set(), "not on the page"
    assert page - code == set(), "only on the page"


def test_each_name_is_there_once(tmp_path: Path) -> None:
    """An alias never hides a metric, and every name is one that Prometheus takes."""
    with open_rooms(tmp_path, has_lake=True) as rooms:
        names = [family.name for family in shown_by(rooms)]
    assert len(names) == len(set(names))
    assert all(re.fullmatch(r"[a-z_][a-z0-9_]*", name) for name in names)
    assert not [name for name in names if name.endswith("_total")]


@given(st.text(), st.text())
def test_any_label_and_help_survive(label: str, help_text: str) -> None:
    """Quotes, backslashes and line ends come back as they were."""
    family = gauge("a_b", help_text, [Point(value=1.5, labels=(("x", label),))])
    for text, parse in (
        (prometheus_text([family]), text_string_to_metric_families),
        (openmetrics_text([family]), openmetrics.text_string_to_metric_families),
    ):
        (found,) = parse(text)
        (sample,) = found.samples
        assert sample.labels == {"x": label}
        assert sample.value == 1.5


def test_quantiles_lie_between_the_bounds(monkeypatch: pytest.MonkeyPatch) -> None:
    """As exact as the buckets are; nothing is known of nothing."""
    monkeypatch.setattr("frazil.metrics._DECLARED", {})
    histogram = Histogram("frazil.test.work.ms", "Work.", bounds=(1, 10, 100))
    assert quantile(histogram, 0.5) is None
    for value in [0.5] * 50 + [5] * 50:
        histogram.record(value)
    assert quantile(histogram, 0.5) == 1
    assert quantile(histogram, 0.75) == 5.5
    histogram.record(1e6)
    assert quantile(histogram, 1.0) == 100


def test_the_process_is_seen() -> None:
    """The numbers are of this very process."""
    facts = process_facts()
    assert 0 < facts.resident_bytes < facts.virtual_bytes
    assert 0 < facts.open_fds <= facts.fds_max
    assert facts.cpu_s > 0
