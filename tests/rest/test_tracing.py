"""Spans, as a collector gets them: decoded with OpenTelemetry's own messages."""

import subprocess
import sys
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from queue import Queue
from typing import Any

import pytest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from ottla import Producer
from ottla.broker.settings import Settings
from ottla.broker.tracing_config import TracingConfig
from ottla.net.config import NetConfig

from .serving import HttpBroker

_TRACE = "4bf92f3577b34da6a3ce929d0e0e4736"
_PARENT = "00f067aa0ba902b7"


class Collector:
    """A collector that accepts OTLP over HTTP."""

    def __init__(self) -> None:
        received: Queue[ExportTraceServiceRequest] = Queue()

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["content-length"]))
                if self.path == "/v1/traces":
                    received.put(ExportTraceServiceRequest.FromString(body))
                self.send_response(200)
                self.send_header("content-length", "0")
                self.end_headers()

            def log_message(self, *_: object) -> None:
                pass

        self._received = received
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._thread = threading.Thread(target=self._server.serve_forever)
        self._thread.start()

    @property
    def endpoint(self) -> str:
        return f"http://127.0.0.1:{self._server.server_port}"

    def close(self) -> None:
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()

    def gone(self) -> None:
        """Stop the collector."""
        self._server.socket.close()

    def spans(self) -> dict[str, Any]:
        """Everything received so far, the last of each name."""
        found = {}
        while not self._received.empty():
            for resource in self._received.get().resource_spans:
                for scope in resource.scope_spans:
                    found.update({span.name: span for span in scope.spans})
        return found


def _attributes(span: Any) -> dict[str, object]:
    return {
        one.key: one.value.string_value
        or one.value.int_value
        or [value.string_value for value in one.value.array_value.values]
        for one in span.attributes
    }


@pytest.fixture
def collector() -> Iterator[Collector]:
    collector = Collector()
    yield collector
    collector.close()


def _settings(collector: Collector, sample_ratio: float = 1.0) -> Settings:
    tracing = TracingConfig(otlp_endpoint=collector.endpoint, sample_ratio=sample_ratio)
    return Settings(net=NetConfig(port=0), tracing=tracing)


def test_a_request_over_http_continues_the_callers_trace_down_to_the_log(collector: Collector, tmp_path: Path) -> None:
    with HttpBroker(tmp_path, settings=_settings(collector)) as served:
        headers = {"traceparent": f"00-{_TRACE}-{_PARENT}-01"}
        served.client.post(
            "/v1/topics/t/messages", json={"messages": [{"value": "x"}]}, headers=headers
        ).raise_for_status()
    spans = collector.spans()
    request = spans["POST /v1/topics/{name}/messages"]
    assert (request.trace_id.hex(), request.parent_span_id.hex()) == (_TRACE, _PARENT)
    assert _attributes(request)["http.response.status_code"] == 200
    produce = spans["Produce"]
    assert (produce.trace_id, produce.parent_span_id) == (request.trace_id, request.span_id)


def test_spans_of_kafka_requests_name_the_client_and_topic(collector: Collector, tmp_path: Path) -> None:
    broker = HttpBroker(tmp_path, settings=_settings(collector))
    with broker as served, Producer(served.servers, client_id="till-4") as producer:
        producer.send("orders", b"x").result()
    produce = collector.spans()["Produce"]
    attributes = _attributes(produce)
    assert attributes["messaging.client.id"] == "till-4"
    assert attributes["network.peer.address"] == "127.0.0.1"
    assert produce.status.code == 0


def test_a_refused_request_is_marked_with_kafkas_error(collector: Collector, tmp_path: Path) -> None:
    with HttpBroker(tmp_path, settings=_settings(collector)) as served:
        assert [served.client.post("/v1/topics", json={"name": "t"}).status_code for _ in range(2)] == [201, 409]
    refused = collector.spans()["CreateTopics"]
    assert _attributes(refused)["error.type"] == ["TOPIC_ALREADY_EXISTS"]
    assert refused.status.code == 2


def test_unsampled_spans_are_not_sent(collector: Collector, tmp_path: Path) -> None:
    with HttpBroker(tmp_path, settings=_settings(collector, sample_ratio=0)) as served:
        served.client.get("/v1/topics").raise_for_status()
    assert collector.spans() == {}


def test_an_unreachable_collector_does_not_affect_requests(collector: Collector, tmp_path: Path) -> None:
    settings = _settings(collector)
    collector.gone()
    with HttpBroker(tmp_path, settings=settings) as served:
        assert served.client.post("/v1/topics/t/messages", json={"messages": [{"value": "x"}]}).status_code == 200


def test_without_the_packages_the_error_says_what_to_install(tmp_path: Path) -> None:
    hide = "import sys; sys.modules['opentelemetry'] = None; from ottla.cli.main import main; main()"
    arguments = ["serve", "--port=0", "--http-port=-1", f"--data-dir={tmp_path}"]
    arguments += ["--set=tracing.otlp_endpoint=http://127.0.0.1:4318"]
    done = subprocess.run(
        [sys.executable, "-c", hide, *arguments], capture_output=True, text=True, timeout=60, check=False
    )
    assert done.returncode != 0
    assert "pip install 'ottla[tracing]'" in done.stderr
    assert "Traceback" not in done.stderr
