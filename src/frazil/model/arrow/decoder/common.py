"""Columns of resources and scopes, which every telemetry table has."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from frazil.model.arrow.decoder.arena import UNKNOWN_SERVICE
from frazil.model.arrow.decoder.columns import Keys, NodeLevel
from frazil.model.arrow.decoder.dispatch import VALUE
from frazil.model.arrow.decoder.fields import IS_STRING
from frazil.model.arrow.decoder.promoted import Columns, promoted_columns
from frazil.model.arrow.schemas import PROMOTED_RESOURCE, SERVICE_NAME

RESOURCE_KEYS = Keys({"service_name": (SERVICE_NAME,), **PROMOTED_RESOURCE})


def resource_columns(resources: NodeLevel, columns: Columns) -> dict[str, pa.Array]:
    """Return column -> array for resources."""
    words = resources.arena.words
    attributes = resources.maps("attributes")
    promoted = RESOURCE_KEYS.find(words, attributes)
    names = promoted.pop("service_name")
    resources.set_types(attributes)
    is_named = (words[names + VALUE] == IS_STRING) & (words[names + VALUE + 2] != 0)
    return {
        "service_name": resources.promoted(
            np.where(is_named, names, UNKNOWN_SERVICE), is_optional=False
        ),
        **{column: resources.promoted(nodes) for column, nodes in promoted.items()},
        "resource_schema_url": resources.text("schema_url", is_optional=True),
        "resource_attributes": resources.map_of(attributes),
        "resource_dropped_attributes_count": resources.count("dropped_attributes_count"),
        **promoted_columns(resources, attributes, columns, "resource"),
    }


def scope_columns(scopes: NodeLevel, columns: Columns) -> dict[str, pa.Array]:
    """Return column -> array for scopes."""
    attributes = scopes.maps("attributes")
    scopes.set_types(attributes)
    return {
        "scope_name": scopes.text("name", is_optional=True),
        "scope_version": scopes.text("version", is_optional=True),
        "scope_schema_url": scopes.text("schema_url", is_optional=True),
        "scope_attributes": scopes.map_of(attributes),
        "scope_dropped_attributes_count": scopes.count("dropped_attributes_count"),
        **promoted_columns(scopes, attributes, columns, "scope"),
    }
