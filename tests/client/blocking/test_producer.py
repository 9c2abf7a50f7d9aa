"""`ottla.Producer` as scripts and threads use it."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import ottla
from ottla.client.errors import ClientClosed, ClientError, ConnectFailed, DeliveryFailed, RecordTooLarge
from ottla.client.serializers import encode_json, encode_text

if TYPE_CHECKING:
    from collections.abc import Iterator

PATIENCE_S = 30


@pytest.fixture(scope="module")
def servers() -> Iterator[str]:
    with ottla.Broker() as broker:
        yield broker.bootstrap_servers


def values(servers: str, topic: str, count: int) -> list[bytes | None]:
    with ottla.Consumer(servers, topics=[topic], auto_offset_reset="earliest") as consumer:
        got: list[bytes | None] = []
        for record in consumer:
            got.append(record.value)
            if len(got) == count:
                break
        return got


def test_a_delivery_has_the_offset_of_its_message(servers: str) -> None:
    with ottla.Producer(servers) as producer:
        first = producer.send("orders", b"one", key=b"k").result(PATIENCE_S)
        second = producer.send("orders", b"two", key=b"k").result(PATIENCE_S)

    assert (first.topic, first.partition, first.offset, second.offset) == ("orders", 0, 0, 1)


def test_leaving_the_block_flushes(servers: str) -> None:
    with ottla.Producer(servers, producer_batch_timeout_ms=60_000) as producer:
        for number in range(1000):
            producer.send("left", b"%d" % number)

    assert values(servers, "left", 1000) == [b"%d" % number for number in range(1000)]


def test_threads_share_one_producer_and_nothing_is_lost(servers: str) -> None:
    def send(thread: int) -> None:
        for number in range(5000):
            producer.send("threads", b"%d-%d" % (thread, number))

    with ottla.Producer(servers, producer_max_bytes=1 << 14) as producer:
        threads = [threading.Thread(target=send, args=(number,)) for number in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    got = values(servers, "threads", 20_000)

    assert len(set(got)) == 20_000
    for thread in range(4):
        of_thread = [value for value in got if value is not None and value.startswith(b"%d-" % thread)]  # type: ignore[str-format]
        assert of_thread == [b"%d-%d" % (thread, number) for number in range(5000)]  # type: ignore[str-format]


def test_serializers_give_keys_and_values_their_types(servers: str) -> None:
    with ottla.Producer(servers, key_serializer=encode_text, value_serializer=encode_json) as producer:
        producer.send("typed", {"n": 1}, key="a")

    assert values(servers, "typed", 1) == [b'{"n":1}']


def test_a_message_that_is_too_large_is_refused_by_send(servers: str) -> None:
    with ottla.Producer(servers) as producer, pytest.raises(RecordTooLarge, match="producer_max_bytes"):
        producer.send("large", b"x" * (2 << 20))


def test_an_unreachable_broker_is_an_error_at_construction() -> None:
    with pytest.raises(ConnectFailed, match=r"127\.0\.0\.1:1"):
        ottla.Producer("127.0.0.1:1")


def test_a_misspelt_option_is_refused_with_a_suggestion() -> None:
    with pytest.raises(TypeError, match=r"unknown option 'compresion'; did you mean 'compression'\?"):
        ottla.Producer("127.0.0.1:1", compresion="zstd")  # type: ignore[call-arg]


def test_after_it_is_closed_nothing_can_be_sent(servers: str) -> None:
    producer = ottla.Producer(servers)
    producer.send("closed", b"before").result(PATIENCE_S)
    producer.close()
    producer.close()

    for call in (lambda: producer.send("closed", b"after"), producer.flush):
        with pytest.raises(ClientClosed, match="the producer is closed"):
            call()


def test_flush_reports_an_unreachable_broker() -> None:
    with ottla.Broker() as broker:
        producer = ottla.Producer(broker.bootstrap_servers, delivery_timeout_ms=300, backoff_max_ms=50)
        producer.send("gone", b"arrives").result(PATIENCE_S)
    producer.send("gone", b"does not")

    with pytest.raises(DeliveryFailed, match="gone-0"):
        producer.flush()
    producer.close()


def test_waiting_for_a_result_in_an_event_loop_is_refused(servers: str) -> None:
    import asyncio

    async def block_the_loop(delivery: object) -> None:
        with pytest.raises(ClientError, match="await the delivery"):
            delivery.result()  # type: ignore[attr-defined]

    with ottla.Producer(servers) as producer:
        asyncio.run(block_the_loop(producer.send("looped", b"value")))


def test_it_works_in_a_running_event_loop_as_in_a_notebook(servers: str) -> None:
    import asyncio

    async def cell() -> None:
        with ottla.Producer(servers) as producer:
            producer.send("notebook", b"value")
        with pytest.raises(ConnectFailed):
            ottla.Producer("127.0.0.1:1")

    asyncio.run(cell())
    assert values(servers, "notebook", 1) == [b"value"]


def test_a_forked_process_cannot_use_its_parents_producer(servers: str) -> None:
    script = f"""
import os, warnings, ottla
warnings.simplefilter("ignore", DeprecationWarning)
producer = ottla.Producer({servers!r})
producer.send("forked", b"parent").result(30)
child = os.fork()
if child == 0:
    try:
        producer.flush()
    except ottla.client.errors.ClientClosed as refused:
        producer.close()
        os._exit(7 if "after a fork" in str(refused) else 1)
    os._exit(2)
assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7
producer.close()
"""
    assert run_script(script) == (0, "", "")


def test_a_program_that_forgets_to_close_exits_and_loses_nothing(servers: str) -> None:
    script = f"""
import ottla
producer = ottla.Producer({servers!r}, producer_batch_timeout_ms=60_000)
for number in range(100):
    producer.send("forgotten", b"%d" % number)
"""
    exit_code, _, _ = run_script(script)

    assert exit_code == 0
    assert values(servers, "forgotten", 100) == [b"%d" % number for number in range(100)]


def test_a_program_without_its_broker_exits_too() -> None:
    script = """
import ottla
with ottla.Broker() as broker:
    producer = ottla.Producer(broker.bootstrap_servers)
    producer.send("t", b"arrives").result(30)
producer.send("t", b"cannot arrive")
"""
    exit_code, _, said = run_script(script)

    assert exit_code == 0
    assert "the producer was not closed" in said


def run_script(script: str) -> tuple[int, str, str]:
    environment = {**os.environ, "PYTHONPATH": str(Path(ottla.__file__).parents[1])}
    done = subprocess.run(
        [sys.executable, "-c", script], env=environment, capture_output=True, text=True, timeout=60, check=False
    )
    return done.returncode, done.stdout, done.stderr
