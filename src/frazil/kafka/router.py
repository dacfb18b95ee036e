"""ApiRouter: which handler answers which API, in which versions. ApiVersions is answered from the
same table.

A family of APIs (`Topics`, `Groups`) is a class that owns its state. It has a method per API,

    async def heartbeat(self, request: HeartbeatRequest, context: RequestContext)
        -> HeartbeatResponse

and a method `register` that adds them to the router. Requests of one connection are handled one
after the other: the next one begins when the handler has returned. A handler whose response takes
long, while the next request may already begin, returns a `PendingReply`; responses are sent in the
order of their requests. None means no response. A handler may raise `FrazilError`: the connection
is closed then, so that an error which the protocol has a code for must be answered with it.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace
from typing import Any

from frazil.kafka.context import RequestContext
from frazil.kafka.error_codes import ErrorCode
from frazil.kafka.wire.apis import API_VERSIONS, APIS
from frazil.kafka.wire.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse
from frazil.kafka.wire.schema import KafkaMessage, VersionRange


class PendingReply:
    """A response that follows. Owned by the event loop.

    Unlike a future it calls back at once: a turn of the loop takes as long as to encode a response.
    """

    __slots__ = ("_then", "is_done", "response")

    def __init__(self) -> None:
        self.is_done = False
        self.response: KafkaMessage | None = None
        self._then: Callable[[], None] | None = None

    def complete(self, response: KafkaMessage | None) -> None:
        """Give the response. Only the first one counts; the client may be gone by then."""
        if self.is_done:
            return
        self.is_done = True
        self.response = response
        if self._then is not None:
            self._then()

    def then(self, call: Callable[[], None]) -> None:
        """Have a function called when the response is there."""
        assert not self.is_done
        self._then = call


Reply = KafkaMessage | PendingReply | None
"""What a handler returns: a response, one that follows, or None for no response."""
Handler = Callable[[Any, RequestContext], Awaitable[Reply]]
AtOnce = Callable[[Any, RequestContext], PendingReply | None]
"""Handles a request without a task, which would take longer than the rest. Returns None, and
changes nothing, if the handler has to wait."""


@dataclass(frozen=True, slots=True)
class RoutedApi:
    """An API that the port offers."""

    key: int
    name: str
    versions: VersionRange
    handle: Handler
    advertised: VersionRange
    """Versions in the response of ApiVersions."""
    needs_login: bool
    at_once: AtOnce | None


class ApiRouter:
    """Filled when the port opens, unchanged afterwards."""

    def __init__(self) -> None:
        self._apis: dict[int, RoutedApi] = {}
        self._features: dict[str, int] = {}
        self.add(API_VERSIONS, "0-4", self.api_versions, needs_login=False)

    def add(
        self,
        key: int,
        versions: str,
        handle: Handler,
        *,
        advertised: str | None = None,
        needs_login: bool = True,
        at_once: AtOnce | None = None,
    ) -> None:
        """Offer an API in these versions. `advertised` are the versions to tell clients of, if
        they are others; without `needs_login` it is answered before authentication. `at_once` is
        tried before `handle`."""
        api, offered = APIS[key], VersionRange.parse(versions)
        assert key not in self._apis and offered.first in api.versions
        assert offered.last in api.versions, f"{api.name} has no version {offered.last}"
        told = offered if advertised is None else VersionRange.parse(advertised)
        self._apis[key] = RoutedApi(key, api.name, offered, handle, told, needs_login, at_once)

    def add_feature(self, name: str, level: int) -> None:
        """Tell clients that the cluster has a feature."""
        self._features[name] = level

    def replace_handlers(self, handler_of: Callable[[RoutedApi], Handler]) -> None:
        """Have other functions answer all APIs, none of them at once. Called once, when all have
        been added."""
        self._apis = {
            key: replace(api, handle=handler_of(api), at_once=None)
            for key, api in self._apis.items()
        }

    def find(self, key: int) -> RoutedApi | None:
        return self._apis.get(key)

    async def api_versions(
        self, request: ApiVersionsRequest, context: RequestContext
    ) -> ApiVersionsResponse:
        """Tell a client what this port offers. It tells what it is."""
        context.connection.software = (
            request.client_software_name,
            request.client_software_version,
        )
        return self.versions_response(ErrorCode.NONE)

    def versions_response(self, code: ErrorCode) -> ApiVersionsResponse:
        """Return the table of APIs. A request for an unknown version of ApiVersions gets it in
        version 0, with an error."""
        return ApiVersionsResponse(
            error_code=code,
            api_keys=[
                ApiVersionsResponse.ApiVersion(api.key, api.advertised.first, api.advertised.last)
                for api in sorted(self._apis.values(), key=lambda api: api.key)
            ],
            # From 1 on: clients before version 4 know no feature that may be 0.
            supported_features=[
                ApiVersionsResponse.SupportedFeatureKey(name, 1, level)
                for name, level in self._features.items()
            ],
            finalized_features_epoch=0,
            finalized_features=[
                ApiVersionsResponse.FinalizedFeatureKey(name, level, level)
                for name, level in self._features.items()
            ],
        )
