"""The records that are sent: by two client libraries, with and without idempotence, in every compression."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from random import Random
from typing import Literal

from aiokafka import AIOKafkaProducer
from aiokafka.structs import RecordMetadata
from confluent_kafka import KafkaError as Refusal
from confluent_kafka import Message, Producer

from bench.soak.ledger import At, Ledger, make_value

TICK_S = 0.05
MOST_WAITING = 2000
"""Records that a producer holds while the broker is away; then it makes no more."""
PATIENCE_S = 120
FILLING = Random(7).randbytes(32_768) + b"the same text again and again, " * 1000


Guarantee = Literal["once", "at least once"]


@dataclass(frozen=True, slots=True)
class Sending:
    name: str
    topic: str
    guarantee: Guarantee
    compression: str
    per_second: int
    most_bytes: int

    @property
    def is_idempotent(self) -> bool:
        return self.guarantee == "once"

    def value(self, number: int) -> bytes:
        rng = Random(number)
        size = rng.randrange(10, self.most_bytes)
        start = rng.randrange(len(FILLING) - size)
        return make_value(self.name, number, FILLING[start : start + size])


CONFLUENT = (
    Sending("confluent-idempotent-zstd", "orders", "once", "zstd", 200, 1000),
    Sending("confluent-plain-lz4", "orders", "at least once", "lz4", 200, 500),
    Sending("confluent-idempotent-bare", "growing", "once", "none", 200, 500),
    Sending("confluent-idempotent-large", "expiring", "once", "none", 150, 8000),
)
AIOKAFKA = (
    Sending("aiokafka-idempotent-gzip", "orders", "once", "gzip", 100, 1000),
    Sending("aiokafka-plain-snappy", "growing", "at least once", "snappy", 100, 500),
)
IDEMPOTENT = frozenset(sending.name for sending in (*CONFLUENT, *AIOKAFKA) if sending.is_idempotent)


def run_confluent(sending: Sending, address: str, ledger: Ledger, stop: threading.Event) -> None:
    producer = Producer(
        {
            "bootstrap.servers": address,
            "log_level": 0,
            "enable.idempotence": sending.is_idempotent,
            "compression.type": sending.compression,
            "reconnect.backoff.max.ms": 500,
            "linger.ms": 10,
            # Without idempotence, more in flight may change places when they are tried again.
            "max.in.flight.requests.per.connection": 5 if sending.is_idempotent else 1,
        }
    )
    number = 0
    while not stop.wait(TICK_S):
        for _ in range(round(sending.per_second * TICK_S)):
            if len(producer) < MOST_WAITING:
                value = sending.value(number)
                producer.produce(sending.topic, value, on_delivery=_note(sending, number, value, ledger))
                number += 1
        producer.poll(0)
    left = producer.flush(PATIENCE_S)
    if left:
        ledger.failed(sending.name, f"{left} records were not delivered within {PATIENCE_S} s")


def _note(sending: Sending, number: int, value: bytes, ledger: Ledger) -> Callable[[Refusal | None, Message], None]:
    def delivered(error: Refusal | None, message: Message) -> None:
        if error is not None:
            ledger.failed(sending.name, error)
        else:
            at = At(str(message.topic()), int(message.partition() or 0))
            ledger.acknowledged(at, int(message.offset() or 0), sending.name, number, value)

    return delivered


def run_aiokafka(sending: Sending, address: str, ledger: Ledger, stop: threading.Event) -> None:
    asyncio.run(_run_aiokafka(sending, address, ledger, stop))


async def _run_aiokafka(sending: Sending, address: str, ledger: Ledger, stop: threading.Event) -> None:
    producer = AIOKafkaProducer(
        bootstrap_servers=address,
        enable_idempotence=sending.is_idempotent,
        acks="all",
        compression_type=sending.compression,
        request_timeout_ms=PATIENCE_S * 1000,
        linger_ms=10,
    )
    await producer.start()
    waiting: set[asyncio.Future[RecordMetadata]] = set()
    number = 0
    try:
        while not stop.is_set():
            await asyncio.sleep(TICK_S)
            for _ in range(round(sending.per_second * TICK_S)):
                if len(waiting) < MOST_WAITING:
                    value = sending.value(number)
                    future = await producer.send(sending.topic, value)
                    waiting.add(future)
                    future.add_done_callback(_note_later(sending, number, value, ledger))
                    future.add_done_callback(waiting.discard)
                    number += 1
        if waiting:
            await asyncio.wait(waiting, timeout=PATIENCE_S)
    finally:
        await producer.stop()


def _note_later(
    sending: Sending, number: int, value: bytes, ledger: Ledger
) -> Callable[[asyncio.Future[RecordMetadata]], None]:
    def delivered(future: asyncio.Future[RecordMetadata]) -> None:
        error = future.exception()
        if error is not None:
            ledger.failed(sending.name, repr(error))
        else:
            placed = future.result()
            ledger.acknowledged(At(placed.topic, placed.partition), placed.offset, sending.name, number, value)

    return delivered


def start_all(address: str, ledger: Ledger, stop: threading.Event) -> list[threading.Thread]:
    threads = [
        threading.Thread(target=run, args=(sending, address, ledger, stop), name=sending.name, daemon=True)
        for run, sendings in ((run_confluent, CONFLUENT), (run_aiokafka, AIOKAFKA))
        for sending in sendings
    ]
    for thread in threads:
        thread.start()
    return threads


def join_all(threads: list[threading.Thread], ledger: Ledger) -> None:
    deadline = time.monotonic() + 2 * PATIENCE_S
    for thread in threads:
        thread.join(max(deadline - time.monotonic(), 0))
        if thread.is_alive():
            ledger.violated(f"{thread.name} did not come to an end")
