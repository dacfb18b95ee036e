"""A REST catalog as PyIceberg has it, but for two things that it does not care for: a server that
never answers is not waited for, and files on a local disk are synced.
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
"""Between two pieces of an answer. Whether something was done is then looked up."""


class BoundedRestCatalog(RestCatalog):
    """Belongs to one thread."""

    def _config_headers(self, session: Session) -> None:
        # Nobody sees a new session before this, also not who fetches a token with it.
        for scheme in ("http://", "https://"):
            session.mount(scheme, _Bounded())
        super()._config_headers(session)

    def _load_file_io(
        self, properties: Properties = EMPTY_DICT, location: str | None = None
    ) -> FileIO:
        made = super()._load_file_io(properties, location)
        is_chosen = "py-io-impl" in {**self.properties, **properties}
        if is_chosen or location is None or urlsplit(location).scheme not in LOCAL:
            return made
        return DurableFileIO(made.properties)


class _Bounded(HTTPAdapter):
    """Waits so long and no longer, whoever asks."""

    def send(  # type: ignore[override]
        self, request: PreparedRequest, *, timeout: object = None, **options: Any
    ) -> Response:
        limits = (CONNECT_TIMEOUT_S, ANSWER_TIMEOUT_S)
        return super().send(request, timeout=limits, **options)
