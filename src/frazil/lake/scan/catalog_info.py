"""Settings of the catalog for users who read the tables with other engines, without secrets."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated

import msgspec

from frazil.lake.catalog.catalog import PYTHON_ONLY, catalog_properties, spark_settings
from frazil.lake.spark.jars import JARS
from frazil.model import doc
from frazil.settings import LakeConfig

HIDDEN = "…"
_SECRET = re.compile(r"secret|token|credential|password|access-key|passphrase|auth", re.IGNORECASE)
_IN_URI = re.compile(r"(?<=://)[^/@]*@")
_IN_QUERY = re.compile(r"([?&][^=&]*(?:secret|token|password|key)[^=&]*=)[^&]*", re.IGNORECASE)


class CatalogInfo(msgspec.Struct, frozen=True, kw_only=True):
    """How other engines reach the catalog. Secrets are replaced by `…`."""

    name: str
    namespace: str
    type: str
    properties: Annotated[dict[str, str], doc("PyIceberg catalog properties.")]
    spark: Annotated[dict[str, str], doc("Spark session settings.")]
    spark_packages: Annotated[list[str], doc("Maven packages that Spark must load.")]


def catalog_info_of(config: LakeConfig, data_folder: Path) -> CatalogInfo:
    """Return the settings of a lake's catalog."""
    properties = catalog_properties(config, data_folder)
    public = {name: value for name, value in properties.items() if name not in PYTHON_ONLY}
    return CatalogInfo(
        name=config.catalog_name,
        namespace=config.namespace,
        type=properties["type"],
        properties=without_secrets(public),
        spark=without_secrets(spark_settings(config, data_folder)),
        spark_packages=[jar.coordinates for jar in JARS],
    )


def without_secrets(settings: Mapping[str, str]) -> dict[str, str]:
    """Hide values with a secret name, the user part of URIs, and secrets in URI queries."""
    return {
        name: HIDDEN
        if _SECRET.search(name)
        else _IN_QUERY.sub(rf"\1{HIDDEN}", _IN_URI.sub(f"{HIDDEN}@", value))
        for name, value in settings.items()
    }
