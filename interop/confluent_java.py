"""Release 7.9.5 of Confluent's Java client of the registry and of its Avro serializers.

Confluent publishes them in a separate repository; Apache Pinot's plug-in contains them unchanged.
"""

from dataclasses import replace

from interop.kafka_artifacts import KafkaArtifacts
from interop.maven_artifacts import maven_artifact

_ARTIFACT = "org.apache.pinot:pinot-confluent-avro:1.5.0:jar:shaded"


def with_confluent(kafka: KafkaArtifacts) -> KafkaArtifacts:
    """Kafka's jars and Confluent's."""
    return replace(kafka, added=maven_artifact(_ARTIFACT))
