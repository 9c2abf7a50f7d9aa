"""A span for every request, exported to an OpenTelemetry collector. Imported only if tracing is enabled."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Final, cast

from ottla import __version__
from ottla.broker.metrics import error_codes
from ottla.core.errors import ConfigError, ErrorCode
from ottla.wire.declare import Response

try:
    from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
    from opentelemetry.sdk.resources import Resource
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.export import BatchSpanProcessor
    from opentelemetry.sdk.trace.sampling import ParentBased, TraceIdRatioBased
    from opentelemetry.trace import SpanKind, Status, StatusCode, use_span
    from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator
except ImportError:
    raise ConfigError(
        "tracing.otlp_endpoint is set, but OpenTelemetry is missing: pip install 'ottla[tracing]'"
    ) from None

if TYPE_CHECKING:
    from collections.abc import Awaitable, Iterator, Mapping

    from opentelemetry.trace import Span

    from ottla.broker.broker import Broker
    from ottla.broker.requests.answers import Answer, Handler
    from ottla.broker.requests.context import Context
    from ottla.broker.tracing_config import TracingConfig
    from ottla.wire.apis import Api
    from ottla.wire.declare import Request

_EXPORT_TIMEOUT_S: Final = 5
_STOP_PATIENCE_MS: Final = 3_000
_MOST_TOPICS: Final = 10
_MOST_ERRORS: Final = 10


class Tracing:
    def __init__(self, config: TracingConfig, node_id: int) -> None:
        resource = Resource.create(
            {"service.name": "ottla", "service.version": __version__, "service.instance.id": str(node_id)}
        )
        sampler = ParentBased(TraceIdRatioBased(config.sample_ratio))
        endpoint = config.otlp_endpoint.rstrip("/") + "/v1/traces"
        # Spans are exported in a separate thread; spans that cannot be sent are dropped.
        self._provider = TracerProvider(sampler=sampler, resource=resource, shutdown_on_exit=False)
        exporter = OTLPSpanExporter(endpoint=endpoint, timeout=_EXPORT_TIMEOUT_S)
        self._provider.add_span_processor(BatchSpanProcessor(exporter))
        self._tracer = self._provider.get_tracer("ottla")
        self._propagator = TraceContextTextMapPropagator()

    def close(self) -> None:
        """Flush pending spans, unless the collector is unreachable."""
        self._provider.force_flush(_STOP_PATIENCE_MS)
        self._provider.shutdown()

    def traced(self, api: Api, handler: Handler) -> Handler:
        """The same handler, with a span around each call."""

        def handle(broker: Broker, request: Request, context: Context) -> object:
            span = self._tracer.start_span(api.name, kind=SpanKind.SERVER, attributes=_attributes(api, context))
            if span.is_recording() and (topics := _topics_of(request)):
                span.set_attribute("messaging.destination.name", topics)
            try:
                answer = handler(broker, request, context)
            except BaseException as failed:
                _fail(span, failed)
                raise
            if answer is None or isinstance(answer, Response):
                _end(span, answer)
                return answer
            return _later(span, cast("Awaitable[Answer]", answer))

        return cast("Handler", handle)

    @contextmanager
    def http_request(self, method: str, headers: Mapping[str, str]) -> Iterator[Span]:
        """A span for a request over HTTP; it continues the trace in the headers."""
        parent = self._propagator.extract(headers)
        attributes = {"http.request.method": method}
        with self._tracer.start_as_current_span(method, parent, SpanKind.SERVER, attributes) as span:
            yield span


def name_http_request(span: Span, method: str, route: str, status: int) -> None:
    span.update_name(f"{method} {route}" if route else method)
    span.set_attributes({"http.route": route, "http.response.status_code": status})
    if status >= 500:
        span.set_status(StatusCode.ERROR)


def _attributes(api: Api, context: Context) -> dict[str, str | int]:
    host, port = context.connection.peer
    return {
        "messaging.system": "kafka",
        "messaging.operation.name": api.name,
        "messaging.client.id": context.client_id,
        "network.peer.address": host,
        "network.peer.port": port,
        "ottla.api.version": context.version,
    }


def _topics_of(request: object) -> tuple[str, ...]:
    """The topics of a request, if its API has a list of them; limited to a few."""
    listed = getattr(request, "topic_data", None) or getattr(request, "topics", None) or ()
    names = (topic if isinstance(topic, str) else getattr(topic, "name", None) or "" for topic in listed[:_MOST_TOPICS])
    return tuple(filter(None, names))


async def _later(span: Span, answer: Awaitable[Answer]) -> Answer:
    try:
        # Nested requests become children of this span.
        with use_span(span, record_exception=False, set_status_on_exception=False):
            response = await answer
    except BaseException as failed:
        _fail(span, failed)
        raise
    _end(span, response)
    return response


def _end(span: Span, answer: Answer) -> None:
    if answer is not None and span.is_recording():
        errors = tuple(sorted({ErrorCode(code).name for code in error_codes(answer)}))[:_MOST_ERRORS]
        if errors:
            span.set_attribute("error.type", errors)
            span.set_status(StatusCode.ERROR)
    span.end()


def _fail(span: Span, failed: BaseException) -> None:
    span.set_attribute("error.type", type(failed).__name__)
    span.set_status(Status(StatusCode.ERROR, str(failed)))
    span.end()
