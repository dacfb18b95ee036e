"""Sixty records, one a second, whose fields are known without reading their lines."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from frazil.languages import ReadRows
from tests.query.build import BEGIN_US, engine_over, log, piece_of, shared

BEGIN_NS = BEGIN_US * 1000
COUNT = 60
SECOND_NS = 10**9
SERVICES = ("cart", "web", "gate", "odd")
NUMBERS = (0, 5, 9, 13, 17, 21)
LEVELS = ("unknown", "debug", "info", "warn", "error", "fatal")


@dataclass(frozen=True, slots=True)
class Known:
    """What is known of the record with this number."""

    n: int

    @property
    def service(self) -> str:
        return SERVICES[self.n % 4]

    @property
    def level(self) -> str:
        return LEVELS[self.n % 6]

    @property
    def status(self) -> int:
        """Of lines of cart and gate."""
        return 200 + 100 * (self.n % 3)

    @property
    def ms(self) -> int:
        return self.n * 10

    @property
    def user(self) -> str:
        return f"u{self.n % 5}"

    @property
    def route(self) -> str:
        """Attribute http.route."""
        return f"/r{self.n % 3}"

    @property
    def retries(self) -> int:
        """Attribute retry.count."""
        return self.n % 7

    @property
    def region(self) -> str:
        """Attribute cloud.region of the resource."""
        return "eu" if self.n < 30 else "us"

    @property
    def pod(self) -> str:
        return f"{self.service}-{self.n % 8 // 4}"

    @property
    def trace(self) -> str:
        return f"{self.n + 1:032x}" if self.n % 5 == 0 else ""

    @property
    def address(self) -> str:
        """Of lines of gate."""
        return f"10.0.{self.n % 3}.{self.n}"

    @property
    def line(self) -> str:
        if self.service == "cart":
            return json.dumps(
                {
                    "status": self.status,
                    "ms": self.ms,
                    "user": {"id": self.n, "name": self.user},
                    "ok": self.n % 8 == 0,
                    "tags": ["a", f"t{self.n}"],
                    "level": "loud",
                }
            )
        if self.service == "web":
            pairs = f"dur={self.n}ms size={self.n}kB service_name=w"
            return f'at=info method=GET path="/p {self.n}" {pairs}'
        if self.service == "gate":
            return f"{self.address} - GET /x/{self.n} {self.status} {self.ms}"
        if self.n == 59:
            return json.dumps({"_entry": "packed line", "pod": "p-59"})
        return f"\x1b[31mplain\x1b[0m text {self.n}" if self.n == 55 else f"plain text {self.n}"

    def row(self) -> dict[str, Any]:
        return log(
            self.n,
            service_name=self.service,
            k8s_pod_name=self.pod,
            severity_number=NUMBERS[self.n % 6],
            severity_text=self.level.upper(),
            trace_id=self.trace or None,
            body=self.line,
            attributes=[("http.route", self.route), ("retry.count", str(self.retries))],
            resource_attributes=[
                ("cloud.region", self.region),
                ("k8s.pod.name", self.pod),
                ("service.name", self.service),
            ],
            scope_attributes=[("build", "7")],
        )


RECORDS = tuple(Known(n) for n in range(COUNT))


@contextmanager
def reading() -> Iterator[ReadRows]:
    """A function that reads the records, half of them in another piece."""
    rows = [known.row() for known in RECORDS]
    pieces = [shared(piece_of("logs", rows[:30])), shared(piece_of("logs", rows[30:]))]
    with engine_over({"logs": pieces}) as engine:
        yield lambda sql: engine.sql(sql)
