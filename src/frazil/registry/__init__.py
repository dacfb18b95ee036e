"""registry: schemas of topics, by Confluent's rules, in the compacted topic `_schemas`.

    register ──> parse ──> compatible? ──> id ──> append to `_schemas` if nothing was written since
                                                       │
    look up  <── subjects, versions, ids <──── fold ───┘

registry.py       Registry: register, look up, delete; levels and modes
compatibility.py  may a schema follow the earlier versions of its subject?
references.py     schemas with those they refer to
stored/           what is stored: records of `_schemas` and their fold
formats/          Avro, Protocol Buffers, JSON Schema: texts, and what can read what
"""

from __future__ import annotations

from frazil.registry.registry import Registration, Registry, check_subject, no_level, no_mode
from frazil.registry.stored.errors import (
    RegistryError,
    RegistryErrorCode,
    subject_not_found,
    version_not_found,
)
from frazil.registry.stored.model import (
    DEFAULT_MODE,
    VERSION_MAX,
    CompatibilityLevel,
    RegistryMode,
    SchemaContent,
    SchemaReference,
    SchemaType,
    SchemaVersion,
)
from frazil.registry.stored.state import RegistryState

__all__ = [
    "DEFAULT_MODE",
    "VERSION_MAX",
    "CompatibilityLevel",
    "Registration",
    "Registry",
    "RegistryError",
    "RegistryErrorCode",
    "RegistryMode",
    "RegistryState",
    "SchemaContent",
    "SchemaReference",
    "SchemaType",
    "SchemaVersion",
    "check_subject",
    "no_level",
    "no_mode",
    "subject_not_found",
    "version_not_found",
]
