"""Names of metrics and labels, against Prometheus' own translator."""

from __future__ import annotations

import json

from frazil.languages.prometheus.names import label_name_of, metric_name_of, unescaped, unit_name_of
from tests.languages.prometheus.make_names import VECTORS


def test_names_are_those_of_prometheus() -> None:
    """Each vector is an input and what the translator made of it."""
    vectors = json.loads(VECTORS.read_text(encoding="utf-8"))
    assert len(vectors) > 1000
    for name, unit, kind, is_monotonic, metric, label, unit_name in vectors:
        what = (name, unit, kind, is_monotonic)
        assert metric_name_of(name, unit, kind, is_monotonic=is_monotonic) == metric, what
        assert label_name_of(name) == label, what
        assert unit_name_of(unit) == unit_name, what


def test_escaped_names_of_grafana() -> None:
    assert unescaped("U__service_2e_name") == "service.name"
    assert unescaped("U__a__b_20ac_") == "a_b€"
    assert unescaped("service_2e_name") == "service_2e_name"
