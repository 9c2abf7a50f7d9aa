"""The order service of the examples with each client, to be used in the same way."""

from __future__ import annotations

import asyncio
import threading
from typing import TYPE_CHECKING, Any, Protocol

from examples.orders import with_aiokafka, with_confluent, with_kafka_python

if TYPE_CHECKING:
    from typing import Self


class Service(Protocol):
    def __enter__(self) -> Self: ...
    def __exit__(self, *_: object) -> None: ...
    def handle_one(self, timeout_s: float = 1.0) -> bool: ...


def confluent(servers: str, name: str) -> Service:
    quick = {"retry.backoff.ms": 10, "reconnect.backoff.ms": 10, "reconnect.backoff.max.ms": 50, "log_level": 0}
    return with_confluent.OrderService(servers, **quick, **{"client.id": name})


def kafka_python(servers: str, name: str) -> Service:
    quick = {"retry_backoff_ms": 10, "reconnect_backoff_ms": 10, "reconnect_backoff_max_ms": 50}
    return with_kafka_python.OrderService(servers, client_id=name, **quick)


def aiokafka(servers: str, name: str) -> Service:
    return _InAThread(with_aiokafka.OrderService(servers, client_id=name, retry_backoff_ms=10))


class _InAThread:
    """A service that lives in an event loop, which runs on between two calls."""

    def __init__(self, service: Any) -> None:
        self._service = service
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever)

    def __enter__(self) -> Self:
        self._thread.start()
        self._run(self._service.__aenter__())
        return self

    def __exit__(self, *_: object) -> None:
        self._run(self._service.__aexit__())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    def handle_one(self, timeout_s: float = 1.0) -> bool:
        handled: bool = self._run(self._service.handle_one(timeout_s))
        return handled

    def _run(self, work: Any) -> Any:
        return asyncio.run_coroutine_threadsafe(work, self._loop).result()
