"""Secrets: values that are not displayed, and references to them.

Passwords are entries of the maps that go to other programs (a catalog, a Kafka client, Spark). They
are recognized by the names those programs use.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path

from frazil.config.settings import Keys, by_keys
from frazil.errors import InvalidSetting

SECRET = re.compile(
    r"password|passphrase|secret|token|credential|authorization|jaas|connection-string"
    r"|(access|account|api|private|encryption|sas)[._-]?key|key\.pem|oauthbearer\.config",
    re.IGNORECASE,
)
"""Names of entries that hold secrets, in PyIceberg, librdkafka and Spark."""
IN_URI = re.compile(r"(?<=://)([^/@:\s]*):\S*@")
"""User and password before the host. The last @ ends them: a password may contain others."""
IN_QUERY = re.compile(r"([?&;][^=&;]*(?:password|secret|token|key)[^=&;]*=)[^&;\s]*", re.IGNORECASE)
"""A password in the query string."""
REFERENCE = re.compile(r"(env|file):(.+)", re.DOTALL)

HIDDEN = "***"


def is_secret(keys: Keys) -> bool:
    """Return whether this is a map entry that holds a secret."""
    return keys not in by_keys() and SECRET.search(keys[-1]) is not None


def redact(keys: Keys, value: object) -> object:
    """Return the value as it may be displayed. References are not secret."""
    if isinstance(value, list):
        return [redact(keys, each) for each in value]
    if not isinstance(value, str):
        return value
    if is_secret(keys):
        return value if REFERENCE.fullmatch(value) else HIDDEN
    return IN_QUERY.sub(rf"\1{HIDDEN}", IN_URI.sub(rf"\1:{HIDDEN}@", value))


def resolve(keys: Keys, value: object, environ: Mapping[str, str]) -> object:
    """Follow `env:NAME` or `file:PATH` in an entry that holds a secret."""
    match = REFERENCE.fullmatch(value) if isinstance(value, str) and is_secret(keys) else None
    if match is None:
        return value
    source, name = match.groups()
    setting = ".".join(keys)
    if source == "env":
        if name not in environ:
            raise InvalidSetting(
                f"{setting} is env:{name}, but the environment has no such variable", setting
            )
        return environ[name]
    try:
        return Path(name).read_text(encoding="utf-8").rstrip("\r\n")
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not UTF-8"
        raise InvalidSetting(
            f"{setting} is file:{name}, which cannot be read: {reason}", setting
        ) from None
