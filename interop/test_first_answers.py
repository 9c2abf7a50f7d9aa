"""The first metadata response of a starting Kafka broker names itself and a controller.

tests/cluster/test_first_answers.py asks Ottla's workers and nodes the same.
"""

import threading
import time
from pathlib import Path

from interop.kafka_artifacts import KafkaArtifacts
from interop.kafka_broker import KafkaBroker
from interop.raw_client import RawClient
from ottla.wire.messages.metadata import MetadataRequest

PATIENCE_S = 60


def connect_early(broker: KafkaBroker) -> RawClient:
    deadline = time.monotonic() + PATIENCE_S
    while True:
        try:
            return RawClient(broker.bootstrap or "127.0.0.1:1")
        except ConnectionRefusedError:
            assert time.monotonic() < deadline


def test_the_first_answer_names_the_broker_and_the_controller(kafka: KafkaArtifacts, tmp_path: Path) -> None:
    broker = KafkaBroker(kafka, tmp_path)
    starting = threading.Thread(target=broker.start)
    starting.start()
    try:
        with connect_early(broker) as client:
            answer = client.ask(MetadataRequest(topics=()), 12)
            assert (answer.controller_id, [one.node_id for one in answer.brokers]) == (1, [1])
    finally:
        starting.join()
        broker.stop()
