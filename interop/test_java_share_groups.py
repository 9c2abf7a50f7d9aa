"""Share groups of Apache Kafka's own Java client against a running Ottla: queues, dead letters, administration."""

import json
import subprocess

from interop.foreign_clients import CLIENTS
from interop.kafka_artifacts import KafkaArtifacts
from interop.ottla_server import OttlaServer

TIMEOUT_S = 60


def test_share_consumers_of_java_share_a_partition(ottla: OttlaServer, kafka: KafkaArtifacts) -> None:
    topic = "java-share"
    command = kafka.command(str(CLIENTS / "java" / "ShareGroups.java"), [ottla.bootstrap, topic], "-Xmx256m")
    done = subprocess.run(
        command, capture_output=True, text=True, timeout=TIMEOUT_S, stdin=subprocess.DEVNULL, check=False
    )
    assert done.returncode == 0, done.stderr[-3000:] + done.stdout[-1000:]
    assert json.loads(done.stdout) == {
        "config": "10",
        "both": True,
        "described": ["Stable", 2],
        "accepted": 39,
        "deliveries": [1, 2],
        "renewed": 1,
        "letters": [
            "value-5",
            f"ottla-dead-letter-group={topic}-group",
            f"ottla-dead-letter-topic={topic}",
            "ottla-dead-letter-partition=0",
            "ottla-dead-letter-offset=5",
            "ottla-dead-letter-delivery-count=1",
            "ottla-dead-letter-reason=rejected",
        ],
        "listed": ["Share"],
        "offset": [40, 0],
        "moved": [10, 30],
        "left": 0,
    }
