"""Labels of series as OTLP's names, attributes and resources, and back.

`job` and `instance` become the resource, from which the Prometheus door makes them again.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from frazil.model import NS_PER_MS
from frazil.rules.samples import METRIC_NAME, LabelPairs, RuleSample, label_pairs

if TYPE_CHECKING:
    from frazil.ingest import GaugeValue

JOB, INSTANCE = "job", "instance"
SERVICE, NAMESPACE, SERVICE_INSTANCE = (
    "service.name",
    "service.namespace",
    "service.instance.id",
)


def gauge_of(sample: RuleSample) -> GaugeValue:
    """Return a sample as a data point."""
    from frazil.ingest import GaugeValue  # loads gRPC, which a reader without rules spares

    labels = dict(sample.labels)
    name = labels.pop(METRIC_NAME)
    resource: dict[str, str] = {}
    if JOB in labels:
        namespace, _, service = labels.pop(JOB).rpartition("/")
        resource = {SERVICE: service, **({NAMESPACE: namespace} if namespace else {})}
    if INSTANCE in labels:
        resource[SERVICE_INSTANCE] = labels.pop(INSTANCE)
    return GaugeValue(
        name=name,
        time_unix_nano=sample.time_ms * NS_PER_MS,
        value=sample.value,
        attributes=labels,
        resource=resource,
    )


def labels_of(resource: Mapping[str, str], attributes: Mapping[str, str]) -> LabelPairs:
    """Return the labels of a stored series, without its name."""
    labels = dict(attributes)
    if SERVICE in resource:
        namespace = resource.get(NAMESPACE)
        labels[JOB] = f"{namespace}/{resource[SERVICE]}" if namespace else resource[SERVICE]
    if SERVICE_INSTANCE in resource:
        labels[INSTANCE] = resource[SERVICE_INSTANCE]
    return label_pairs(labels)
