"""Self tracing: spans of the node itself, exported as the `OTEL_*` variables say.

Off unless `self_tracing` is set: a shell in which the variables are set for other programs must not
make a node trace itself into itself. Needs the OpenTelemetry SDK, an extra.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from types import TracebackType
from typing import TYPE_CHECKING, Any

from frazil import tracing
from frazil.tracing import OWN_HEADER, Fact
from frazil.version import __version__

if TYPE_CHECKING:
    from opentelemetry.sdk.trace import TracerProvider

logger = logging.getLogger(__name__)

ENDPOINTS = ("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "OTEL_EXPORTER_OTLP_ENDPOINT")
PROTOCOLS = ("OTEL_EXPORTER_OTLP_TRACES_PROTOCOL", "OTEL_EXPORTER_OTLP_PROTOCOL")
HEADERS = ("OTEL_EXPORTER_OTLP_TRACES_HEADERS", "OTEL_EXPORTER_OTLP_HEADERS")
PROTOCOL = "http/protobuf"
CLOSE_S = 1.0
"""Time to send remaining spans at a stop."""


@contextmanager
def export_own_traces(environ: Mapping[str, str], *, is_enabled: bool) -> Iterator[None]:
    """Export spans while open, if the settings and the environment enable it."""
    tracer = _open_tracer(environ) if is_enabled else None
    if tracer is None:
        yield
        return
    tracing.set_tracer(tracer)
    try:
        yield
    finally:
        tracing.set_tracer(None)
        tracer.close()


def why_disabled(environ: Mapping[str, str]) -> str | None:
    """Return why export is not possible, "" if it is not enabled, or None if it works."""
    if environ.get("OTEL_SDK_DISABLED", "").strip().lower() == "true":
        return ""
    exporter = environ.get("OTEL_TRACES_EXPORTER", "").strip().lower()
    if exporter == "none" or not (exporter or any(environ.get(name) for name in ENDPOINTS)):
        return ""
    if exporter not in ("", "otlp"):
        return f"OTEL_TRACES_EXPORTER is {exporter}; use otlp or none"
    protocol = next((environ[name] for name in PROTOCOLS if environ.get(name)), PROTOCOL)
    if protocol != PROTOCOL:
        return f"{PROTOCOLS[0]} is {protocol}; set it to {PROTOCOL}"
    return None


def _open_tracer(environ: Mapping[str, str]) -> SdkTracer | None:
    reason = why_disabled(environ)
    if reason is None:
        try:
            return SdkTracer(environ)
        except ImportError:
            reason = "the OpenTelemetry SDK is missing: pip install 'frazil[otel]'"
    if reason:
        logger.warning("own traces are not exported", extra={"reason": reason})
    return None


class SdkTracer:
    """Creates spans with the OpenTelemetry SDK, which sends batches in its own thread."""

    def __init__(self, environ: Mapping[str, str]) -> None:
        from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
        from opentelemetry.sdk.resources import Resource
        from opentelemetry.sdk.trace import TracerProvider
        from opentelemetry.sdk.trace.export import BatchSpanProcessor
        from opentelemetry.util.re import parse_env_headers

        text = next((environ[name] for name in HEADERS if environ.get(name)), "")
        headers = {**parse_env_headers(text, liberal=True), OWN_HEADER: "1"}
        has_name = "OTEL_SERVICE_NAME" in environ or "service.name=" in environ.get(
            "OTEL_RESOURCE_ATTRIBUTES", ""
        )
        facts: dict[str, Any] = {"service.version": __version__}
        if not has_name:
            facts["service.name"] = "frazil"
        self._provider: TracerProvider = TracerProvider(
            resource=Resource.create(facts), shutdown_on_exit=False
        )
        self._provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter(headers=headers)))
        self._tracer = self._provider.get_tracer("frazil", __version__)

    def span(self, name: str, parent: str | None, facts: dict[str, Fact]) -> SdkSpan:
        from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

        context = None
        if parent is not None:
            context = TraceContextTextMapPropagator().extract({"traceparent": parent})
        return SdkSpan(self._tracer.start_span(name, context, attributes=_dotted(facts)))

    def ids(self) -> tuple[str, str] | None:
        from opentelemetry.trace import format_span_id, format_trace_id, get_current_span

        context = get_current_span().get_span_context()
        if not context.is_valid:
            return None
        return format_trace_id(context.trace_id), format_span_id(context.span_id)

    def flush(self, within_s: float) -> None:
        """Send pending spans. The SDK may retry for longer than `within_s`; do not wait for it."""
        self._run_within(lambda: self._provider.force_flush(int(within_s * 1000)), within_s)

    def close(self) -> None:
        self._run_within(self._provider.shutdown, CLOSE_S)

    def _run_within(self, work: Any, within_s: float) -> None:
        thread = threading.Thread(target=work, name="frazil-own-traces", daemon=True)
        thread.start()
        thread.join(within_s)


class SdkSpan:
    """A span of the SDK. A dropped span is never ended, and so never sent."""

    def __init__(self, span: Any) -> None:
        self._span = span
        self._is_dropped = False
        self._entered: Any = None

    def note(self, **facts: Fact) -> None:
        self._span.set_attributes(_dotted(facts))

    def drop(self) -> None:
        self._is_dropped = True

    def end(self) -> None:
        if not self._is_dropped:
            self._span.end()

    def __enter__(self) -> SdkSpan:
        from opentelemetry.trace import use_span

        self._entered = use_span(self._span, record_exception=False, set_status_on_exception=False)
        self._entered.__enter__()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if isinstance(error, Exception):
            from opentelemetry.trace import Status, StatusCode

            self._span.record_exception(error)
            self._span.set_status(Status(StatusCode.ERROR, str(error)))
        self._entered.__exit__(None, None, None)
        self.end()


def _dotted(facts: Mapping[str, Fact]) -> dict[str, Fact]:
    return {f"frazil.{name}": value for name, value in facts.items()}
