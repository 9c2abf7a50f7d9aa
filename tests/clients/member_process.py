"""A group member in a separate process: commits half of the received records, reports it, and keeps polling."""

from __future__ import annotations

import sys

from ottla.core.ids import TopicPartition

from .adapters.base import Committed, ConsumerOptions
from .conftest import CLIENTS
from .making import receive


def main(client_name: str, servers: str, group: str, topic: str, session_timeout_ms: str) -> None:
    [client] = (client for client in CLIENTS if client.name == client_name)
    options = ConsumerOptions(group=group, session_timeout_ms=int(session_timeout_ms))
    consumer = client.consumer(servers, options)
    consumer.subscribe(topic)
    receive(consumer, 10)
    consumer.commit({TopicPartition(topic, 0): Committed(5)})
    sys.stdout.write("committed\n")
    sys.stdout.flush()
    while True:
        consumer.poll()


if __name__ == "__main__":
    main(*sys.argv[1:])
