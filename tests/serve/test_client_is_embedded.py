"""One behaviour: a node asked over HTTP is what an open folder is, method by method."""

from __future__ import annotations

import inspect
import threading
from collections.abc import Iterator

import pytest

import frazil
from frazil.client import Client
from frazil.embedded import Embedded
from frazil.errors import FrazilError, Malformed, Rejected, TooLarge, Unavailable, Unknown
from frazil.results import Limits
from tests.serve.api.test_sql import SLOW
from tests.serve.served import Served, fill, served

ROWS = 1500
Asked = Embedded | Client


@pytest.fixture(scope="module")
def there(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    with served(tmp_path_factory.mktemp("both") / "data") as opened:
        fill(opened, ROWS)
        yield opened


@pytest.fixture(params=["open", "connect"])
def asked(there: Served, request: pytest.FixtureRequest) -> Asked:
    return there.embedded if request.param == "open" else frazil.connect(there.url)


@pytest.mark.parametrize("name", ["sql", "flush", "maintain"])
def test_client_and_embedded_have_the_same_methods(name: str) -> None:
    """What the one can be asked, the other can; only what the node's own rooms need is left out."""
    inside = inspect.signature(getattr(Embedded, name)).parameters
    outside = inspect.signature(getattr(Client, name)).parameters
    assert set(outside) <= set(inside)
    assert set(inside) - set(outside) <= {"cancel_token"}


def test_rows(asked: Asked) -> None:
    with asked.sql("SELECT _row, body FROM logs ORDER BY _offset, _row") as result:
        assert result.schema.names == ["_row", "body"]
        rows = result.fetchall()
    assert [body for _, body in rows] == [f"case {number}" for number in range(ROWS)]
    assert asked.sql("SELECT body FROM logs WHERE false").fetchall() == []


ERRORS: list[tuple[str, Limits, type[FrazilError], str]] = [
    ("", Limits(), Malformed, "SELECT|empty"),
    ("SELEC 1", Limits(), Malformed, "not SQL"),
    ("SELECT 1; SELECT 2", Limits(), Malformed, "one"),
    ("SELECT nope FROM logs", Limits(), Unknown, "no column nope"),
    ("SELECT * FROM nope", Limits(), Unknown, "nope"),
    ("DELETE FROM logs", Limits(), Rejected, "read-only"),
    ("SELECT 1 / 0", Limits(), Malformed, "(?i)divi"),
    ("SELECT body FROM logs", Limits(rows_max=10), TooLarge, "more than 10 rows"),
    (SLOW, Limits(timeout_ms=200), TooLarge, "200 ms"),
]


@pytest.mark.parametrize(("text", "limits", "kind", "words"), ERRORS)
def test_errors(
    asked: Asked, text: str, limits: Limits, kind: type[FrazilError], words: str
) -> None:
    """The same kind, and the same words."""
    with pytest.raises(kind, match=words) as raised:
        asked.sql(text, limits=limits).arrow()
    assert type(raised.value) is kind


def test_a_cancel_from_another_thread(asked: Asked) -> None:
    result = asked.sql("SELECT a.body FROM logs a CROSS JOIN logs b CROSS JOIN logs c")
    batches = iter(result)
    next(batches)
    thread = threading.Thread(target=result.cancel)
    thread.start()
    thread.join()
    with pytest.raises(Unavailable, match="cancelled"):
        for _ in batches:
            continue


def test_closing_a_result_early_ends_the_query(asked: Asked) -> None:
    """Closing it in the middle ends the query; there is room for others at once."""
    with asked.sql("SELECT a.body FROM logs a CROSS JOIN logs b") as result:
        assert next(iter(result)).num_rows > 0
    assert asked.sql("SELECT 1 AS a").fetchall() == [(1,)]


@pytest.mark.parametrize("name", ["flush", "maintain"])
def test_flush_without_a_lake_is_refused(asked: Asked, name: str) -> None:
    with pytest.raises(Unavailable, match="lake"):
        getattr(asked, name)()
