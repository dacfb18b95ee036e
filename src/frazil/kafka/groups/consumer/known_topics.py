"""KnownTopics: the topics that groups can subscribe to, by name and by regular expression."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from typing import Any, NamedTuple

from frazil.errors import Malformed
from frazil.kafka.groups.timers import GroupTimers
from frazil.kafka.topics.client_topics import ClientTopics
from frazil.log import Log

REFRESH_MS = 1_000
"""How old this may be when members send heartbeats. When one joins, it is made new."""
REGEX_CHARACTERS_MAX = 1_000
REGEX_BYTES_MAX = 1 << 20
"""Memory of one compiled regular expression."""
MATCHES_MAX = 1_000
"""Regular expressions whose topics are kept, until the topics change."""
INTERNAL_PREFIX = "__"
"""Regular expressions match no internal topics: a group that reads what it commits has no end."""


class KnownTopic(NamedTuple):
    """A topic, and the number of its partitions."""

    name: str
    topic_id: bytes
    partitions: int


class KnownTopics:
    """Owned by one thread."""

    def __init__(
        self, log: Log | ClientTopics, timers: GroupTimers, *, has_acls: bool = False
    ) -> None:
        """With ACLs, members differ in the topics that a regular expression means."""
        self.has_acls = has_acls
        self._log = log
        self._timers = timers
        self.version = 0
        """Changes with the topics."""
        self.by_name: dict[str, KnownTopic] = {}
        self.by_id: dict[bytes, KnownTopic] = {}
        self._due_ms = 0
        self._matches: dict[str, tuple[str, ...]] = {}
        """Of regular expressions, in this version."""
        self.refresh()

    def refresh_if_due(self) -> None:
        """Look for changes once in a while."""
        if self._timers.now_ms() >= self._due_ms:
            self.refresh()

    def refresh(self) -> None:
        """Look for changes now."""
        self._due_ms = self._timers.now_ms() + REFRESH_MS
        found = {
            topic.name: KnownTopic(topic.name, topic.topic_id.bytes, len(topic.partitions))
            for topic in self._log.topics()
        }
        if found != self.by_name:
            self.by_name = found
            self.by_id = {topic.topic_id: topic for topic in found.values()}
            self.version += 1
            self._matches = {}

    def matching(self, regex: str) -> tuple[str, ...]:
        """Return the topics whose whole names match, sorted."""
        if regex not in self._matches:
            compiled = compile_regex(regex)
            if len(self._matches) >= MATCHES_MAX:
                self._matches.clear()
            self._matches[regex] = tuple(
                name
                for name in sorted(self.by_name)
                if not name.startswith(INTERNAL_PREFIX) and compiled.fullmatch(name) is not None
            )
        return self._matches[regex]

    def hash_of(self, names: Iterable[str]) -> int:
        """Return a number that changes if one of these topics is created, deleted or grows; 0 if
        none exists."""
        digest = hashlib.blake2b(digest_size=8)
        known = [self.by_name[name] for name in sorted(names) if name in self.by_name]
        for topic in known:
            digest.update(b"%s%b%d;" % (topic.name.encode(), topic.topic_id, topic.partitions))
        return int.from_bytes(digest.digest(), "big", signed=True) if known else 0


def compile_regex(regex: str) -> Any:
    """Return a compiled expression. RE2 takes linear time, whatever a client asks for. Raises
    `Malformed` if it is none."""
    import re2  # few groups have one

    options = re2.Options()
    options.log_errors = False
    options.max_mem = REGEX_BYTES_MAX
    if len(regex) > REGEX_CHARACTERS_MAX:
        raise Malformed(f"it has {len(regex)} characters; {REGEX_CHARACTERS_MAX} are allowed")
    try:
        return re2.compile(regex, options)
    except re2.error as error:
        reason = error.args[0]
        text = reason.decode(errors="replace") if isinstance(reason, bytes) else str(reason)
        raise Malformed(text) from None
