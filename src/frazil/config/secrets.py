"""Values that are not shown, and references to them.

Passwords are entries of the maps that go to other programs (a catalog, a Kafka client, Spark), so
they are known by their names, as those programs use them.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path

from frazil.config.settings import Keys, by_keys
from frazil.errors import Malformed

SECRET = re.compile(
    r"password|passphrase|secret|token|credential|authorization|jaas|connection-string"
    r"|(access|account|api|private|encryption)[.-]?key|key\.pem|oauthbearer\.config",
    re.IGNORECASE,
)
"""Names of entries that hold secrets, of PyIceberg, librdkafka and Spark."""
IN_URI = re.compile(r"(?<=://)([^/@:\s]*):\S*@")
"""User and password in front of a host. The last @ ends it: a password may hold others."""
IN_QUERY = re.compile(r"([?&;][^=&;]*(?:password|secret|token|key)[^=&;]*=)[^&;\s]*", re.IGNORECASE)
"""The same behind it."""
REFERENCE = re.compile(r"(env|file):(.+)", re.DOTALL)

HIDDEN = "***"


def is_secret(keys: Keys) -> bool:
    """Is this an entry of a map that holds a secret?"""
    return keys not in by_keys() and SECRET.search(keys[-1]) is not None


def hidden(keys: Keys, value: object) -> object:
    """The value as it may be shown: references and what is no secret as they are."""
    if not isinstance(value, str):
        return value
    if is_secret(keys):
        return value if REFERENCE.fullmatch(value) else HIDDEN
    return IN_QUERY.sub(rf"\1{HIDDEN}", IN_URI.sub(rf"\1:{HIDDEN}@", value))


def resolved(keys: Keys, value: object, environ: Mapping[str, str]) -> object:
    """What `env:NAME` or `file:PATH` stands for, in an entry that holds a secret."""
    found = REFERENCE.fullmatch(value) if isinstance(value, str) and is_secret(keys) else None
    if found is None:
        return value
    source, name = found.groups()
    if source == "env":
        if name not in environ:
            raise Malformed(
                f"{'.'.join(keys)} is env:{name}, and there is no such variable in the environment"
            )
        return environ[name]
    try:
        return Path(name).read_text(encoding="utf-8").rstrip("\r\n")
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not UTF-8"
        raise Malformed(
            f"{'.'.join(keys)} is file:{name}, which cannot be read: {reason}"
        ) from None
