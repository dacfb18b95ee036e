"""Clients of a shared tail get every row once, wherever they resume."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest

from frazil.serve.http.shared_tails import SharedTails, Watermarks

INTERVAL_S = 0.001


class Rows:
    """Rows that become visible one by one; row n has offset n."""

    def __init__(self, visible: int) -> None:
        self.visible = visible

    def poller(self, start: Watermarks | None) -> RowsPoller:
        return RowsPoller(self, self.visible if start is None else start[0])


class RowsPoller:
    def __init__(self, rows: Rows, begin: int) -> None:
        self._rows = rows
        self.watermarks = {0: begin}

    async def poll(self, until: Watermarks | None) -> bytes | None:
        await asyncio.sleep(0)
        begin, end = self.watermarks[0], self._rows.visible
        if until is not None:
            end = min(end, until[0])
        self.watermarks = {0: max(begin, end)}
        return "".join(f"{n} " for n in range(begin, end)).encode() or None

    def close(self) -> None:
        """Holds nothing."""


async def read_until(stream: AsyncIterator[bytes], last: str) -> list[str]:
    found: list[str] = []
    async for events in stream:
        found += events.decode().split()
        if last in found:
            break
    return found


@pytest.mark.parametrize("start", [0, 3, 5, 8])
def test_a_client_that_resumes_gets_what_it_has_not_seen(start: int) -> None:
    """From before the rows that are visible, and, after a restart, from beyond them."""

    async def follow() -> list[str]:
        rows, tails = Rows(visible=5), SharedTails(INTERVAL_S)

        async def grow() -> None:
            while rows.visible < 12:
                await asyncio.sleep(5 * INTERVAL_S)
                rows.visible += 1

        growing = asyncio.create_task(grow())
        stream = tails.follow("logs", rows.poller, {0: start}, lambda _: b"")
        found = await asyncio.wait_for(read_until(stream, "11"), 10)
        await growing
        return found

    assert asyncio.run(follow()) == [str(n) for n in range(start, 12)]
