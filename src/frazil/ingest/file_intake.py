"""FileIntake: records of files, which pass the same checks as requests of the OTLP ports.

Tasks of a load use it before anything is written: what it returns may be stored as it is. What was
rejected is an error of the load.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from frazil.disk import Disk
from frazil.errors import TooLarge
from frazil.ingest.otlp.json import protobuf_of_json
from frazil.ingest.otlp.redact import Redactor, compile_rules, load_hash_key
from frazil.ingest.request_check import CheckedRequest, RequestCheck, Transport
from frazil.model import Clock, Rand, Signal
from frazil.settings import IngestConfig, RedactRule

LOAD: Transport = "load"


class FileIntake:
    """Owned by one thread."""

    def __init__(
        self,
        config: IngestConfig,
        rules: Sequence[RedactRule],
        bytes_max: int,
        disk: Disk,
        *,
        clock: Clock,
        rand: Rand,
    ) -> None:
        """`disk` is the data folder, which may hold the key of hashes. A request above `bytes_max`
        cannot be appended."""
        redactor = None
        if rules:
            key = load_hash_key(disk, config.redact_key_file, rand)
            redactor = Redactor(compile_rules(rules), key)
        # A position makes them exactly once, and equal lines are different records.
        config = msgspec.structs.replace(config, deduplicate=False)
        self._check = RequestCheck(config, clock, redactor)
        self._bytes_max = min(bytes_max, config.body_bytes_max)

    def check(self, signal: Signal, body: bytes) -> CheckedRequest:
        """Return a request as it may be stored. Raises `Malformed` or `TooLarge`."""
        self._check_length(body)
        checked = self._check.apply(signal, LOAD, body, self._check.scan(signal, body))
        self._check_length(checked.body)
        return checked

    def check_json(self, signal: Signal, text: bytes) -> CheckedRequest:
        """Return an OTLP/JSON request as it may be stored."""
        return self.check(signal, protobuf_of_json(signal, text))

    def _check_length(self, body: bytes) -> None:
        if len(body) > self._bytes_max:
            raise TooLarge(
                f"it has {len(body)} bytes as OTLP, and requests have at most {self._bytes_max}"
            )
