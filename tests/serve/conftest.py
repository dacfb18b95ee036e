"""A node that has heard the shop, and what was sent to it. Each module that asks has its own."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.demo.records import Sent
from tests.serve.served import Served, served
from tests.serve.shop import send_shop


@pytest.fixture(scope="module")
def shop(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Served, Sent]]:
    with served(tmp_path_factory.mktemp("shop") / "data") as opened:
        port = opened.rooms.otlp.http_port
        yield opened, send_shop(port, lambda text: opened.embedded.sql(text).fetchall())


@pytest.fixture
def there(shop: tuple[Served, Sent]) -> Served:
    return shop[0]


@pytest.fixture
def sent(shop: tuple[Served, Sent]) -> Sent:
    return shop[1]
