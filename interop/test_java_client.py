"""Apache Kafka's own Java client against a running Ottla."""

from interop.foreign_clients import CLIENTS
from interop.kafka_artifacts import KafkaArtifacts
from interop.ottla_server import OttlaServer
from interop.scenario import play


def test_the_java_client_plays_the_scenario(ottla: OttlaServer, kafka: KafkaArtifacts) -> None:
    # Java runs a program of one file from its source; what it is compiled to is nowhere kept.
    play(ottla, kafka.command(str(CLIENTS / "java" / "Scenario.java"), [], "-Xmx256m"), "java")
