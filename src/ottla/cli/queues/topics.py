"""`ottla queue import` and `export`: copy between a queue and a topic; interrupted copies can be continued."""

from __future__ import annotations

import sys
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from ottla.cli.connecting import with_broker_options
from ottla.cli.security.key_files import with_key_file
from ottla.core.ids import TopicPartition
from ottla.queue import Queue

if TYPE_CHECKING:
    from ottla import Consumer as TopicConsumer
    from ottla import Producer
    from ottla.cli.connecting import Reach
    from ottla.queue import Consumer, KeyRing, Message

TYPE_HEADER: Final = "msg_type"
"""The header of a record that says whether the message was text."""
_TOGETHER: Final = 1000
_POLL_MS: Final = 1000

_FOLDER = click.argument("folder", type=click.Path(path_type=Path))
_NAME = click.argument("name")
_TOPIC = click.argument("topic")


@click.command(
    "export",
    epilog="""\b
Examples:
  ottla queue export queues jobs orders
  ottla queue export queues jobs orders --broker kafka.example:9093 --tls --sasl SCRAM-SHA-512 --user ann
""",
)
@_FOLDER
@_NAME
@_TOPIC
@with_key_file
@with_broker_options
def export_queue(folder: Path, name: str, topic: str, keys: KeyRing | None, *, reach: Reach) -> None:
    """Produce the messages of a queue to TOPIC; commits as consumer `export-TOPIC`."""
    from ottla import Producer

    with (
        Queue(folder, name, "read", keys=keys) as queue,
        queue.consumer(f"export-{topic}", "earliest") as consumer,
        Producer(reach.servers, security=reach.security()) as producer,
    ):
        count = _export(consumer, producer, topic)
    click.echo(f"{count} message{'' if count == 1 else 's'} written to {topic}", err=True)


def _export(consumer: Consumer, producer: Producer[Any, Any], topic: str) -> int:
    count = 0
    with click.progressbar(length=consumer.lag, label=f"to {topic}", file=sys.stderr) as bar:
        while messages := consumer.pop_many(_TOGETHER):
            deliveries = [producer.send(topic, one.body, headers=[(TYPE_HEADER, _type_of(one))]) for one in messages]
            producer.flush()
            for delivery in deliveries:
                delivery.result()
            consumer.commit()
            count += len(messages)
            bar.update(len(messages))
    return count


def _type_of(message: Message) -> bytes:
    return b"string" if message.is_text else b"object"


@click.command(
    "import",
    epilog="""\b
Examples:
  ottla queue import queues jobs orders
  ottla queue import queues jobs orders --broker prod
""",
)
@_FOLDER
@_NAME
@_TOPIC
@with_key_file
@with_broker_options
def import_topic(folder: Path, name: str, topic: str, keys: KeyRing | None, *, reach: Reach) -> None:
    """Push the current messages of TOPIC to a queue; commits as group `queue-NAME`."""
    from ottla import Admin
    from ottla import Consumer as TopicConsumer

    with Admin(reach.servers, security=reach.security()) as admin:
        partitions = [TopicPartition(topic, number) for number in admin.describe_topic(topic).partitions]
    with (
        TopicConsumer(
            reach.servers,
            group=f"queue-{name}",
            auto_offset_reset="earliest",
            auto_commit=False,
            security=reach.security(),
        ) as consumer,
        Queue(folder, name, fsync="batch", keys=keys) as queue,
    ):
        consumer.assign(partitions)
        count = _import(consumer, queue, partitions)
    click.echo(f"{count} message{'' if count == 1 else 's'} pushed to {name}", err=True)


def _import(consumer: TopicConsumer[Any, Any], queue: Queue, partitions: list[TopicPartition]) -> int:
    ends = consumer.end_offsets(*partitions)
    left = {at: end for at, end in ends.items() if consumer.position(at) < end}
    total = sum(end - consumer.position(at) for at, end in left.items())
    count = 0
    with click.progressbar(length=total, label=f"to {queue.name}", file=sys.stderr) as bar:
        while left:
            records = consumer.poll(_TOGETHER, timeout_ms=_POLL_MS)
            # Messages that arrive meanwhile are left for the next run, and a null has nothing to push.
            wanted = [one for one in records if one.offset < ends[TopicPartition(one.topic, one.partition)]]
            count += queue.push_many(_message_of(one.value, one.headers) for one in wanted if one.value is not None)
            consumer.commit({at: min(consumer.position(at), ends[at]) for at in partitions})
            left = {at: end for at, end in left.items() if consumer.position(at) < end}
            bar.update(len(wanted))
    return count


def _message_of(value: bytes, headers: tuple[tuple[str, bytes | None], ...]) -> bytes | str:
    if dict(headers).get(TYPE_HEADER) == b"string":
        with suppress(UnicodeDecodeError):
            return value.decode()
    return value
