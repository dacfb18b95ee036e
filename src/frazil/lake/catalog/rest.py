"""PyIceberg's REST catalog with two additions: requests time out, and files written to a local disk
are synced.
"""

from __future__ import annotations

from typing import Any
from urllib.parse import urlsplit

from pyiceberg.catalog.rest import RestCatalog
from pyiceberg.io import FileIO
from pyiceberg.typedef import EMPTY_DICT, Properties
from requests import PreparedRequest, Response, Session
from requests.adapters import HTTPAdapter

from frazil.lake.catalog.file_io import LOCAL, DurableFileIO

CONNECT_TIMEOUT_S = 10.0
ANSWER_TIMEOUT_S = 60.0
"""Longest pause within a response. After a timeout the caller checks whether a commit succeeded."""


class BoundedRestCatalog(RestCatalog):
    """Owned by one thread."""

    def _config_headers(self, session: Session) -> None:
        # The first hook of a new session: it runs before a token is fetched with it.
        for scheme in ("http://", "https://"):
            session.mount(scheme, _TimeoutAdapter())
        super()._config_headers(session)

    def _load_file_io(
        self, properties: Properties = EMPTY_DICT, location: str | None = None
    ) -> FileIO:
        file_io = super()._load_file_io(properties, location)
        is_configured = "py-io-impl" in {**self.properties, **properties}
        if is_configured or location is None or urlsplit(location).scheme not in LOCAL:
            return file_io
        return DurableFileIO(file_io.properties)


class _TimeoutAdapter(HTTPAdapter):
    """Sets the same timeouts for every request, whatever the caller passed."""

    def send(  # type: ignore[override]
        self, request: PreparedRequest, *, timeout: object = None, **options: Any
    ) -> Response:
        timeouts = (CONNECT_TIMEOUT_S, ANSWER_TIMEOUT_S)
        return super().send(request, timeout=timeouts, **options)
