"""Consumers of tasks. A Python worker reuses them, and their connections, for its next ranges and tasks."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

from ottla.spark.kafka_settings import consumer_options

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ottla.client.blocking.background import Background
    from ottla.client.consumer.consumer import Consumer
    from ottla.client.options import ConsumerOptions
    from ottla.spark.reader.options import SourceOptions

_FETCH_BYTES: Final = 4 << 20
_BUFFERS: Final = 2
_idle: Final[dict[Background, list[Consumer[bytes, bytes]]]] = {}


@contextmanager
def consumer_of(link: Background, options: SourceOptions) -> Iterator[Consumer[bytes, bytes]]:
    """A consumer for one range. It is reused if the block ends without an error."""
    idle = _idle.setdefault(link, [])
    consumer = idle.pop() if idle else link.do(lambda: link.client.consumer(**_consumer_options(options)))
    try:
        yield consumer
    except BaseException:
        # Also when Spark stops early: a fetch may be in flight, which the next range would have to wait for.
        link.call(consumer.close())
        raise
    link.call(consumer.unsubscribe())
    idle.append(consumer)


def _consumer_options(options: SourceOptions) -> ConsumerOptions:
    defaults: ConsumerOptions = {
        "auto_offset_reset": "none",
        "consumer_max_bytes": _FETCH_BYTES,
        "consumer_queue_buffers": _BUFFERS,
    }
    return {**defaults, **consumer_options(options.kafka)}
