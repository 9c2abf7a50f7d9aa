"""Confluent's Java client of the registry and its Avro serializers, fetched once from Maven Central.

Confluent publishes them in a separate repository; Apache Pinot's plug-in contains them unchanged.
"""

import shutil
import subprocess
from dataclasses import replace
from functools import cache

from interop.foreign_clients import only_one_process
from interop.kafka_artifacts import CACHE, FETCH_TIMEOUT_S, KafkaArtifacts, ToolMissingError

ARTIFACT = "org.apache.pinot:pinot-confluent-avro:1.5.0:jar:shaded"
_FOLDER = CACHE / "confluent-java-1.5.0"


@cache
def with_confluent(kafka: KafkaArtifacts) -> KafkaArtifacts:
    """Kafka's jars, and release 7.9.5 of Confluent's."""
    if not _FOLDER.is_dir():
        with only_one_process("confluent-java"):
            if not _FOLDER.is_dir():
                _fetch()
    return replace(kafka, added=_FOLDER)


def _fetch() -> None:
    mvn = shutil.which("mvn")
    if mvn is None:
        raise ToolMissingError("Maven (mvn) is not installed, so Confluent's Java serializers cannot be fetched.")
    partial = CACHE / "partial-confluent-java"
    shutil.rmtree(partial, ignore_errors=True)
    command = [mvn, "-B", "-ntp", "dependency:copy", f"-Dartifact={ARTIFACT}", f"-DoutputDirectory={partial}"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=FETCH_TIMEOUT_S, check=False)
    if done.returncode != 0:
        errors = [line for line in done.stdout.splitlines() if "ERROR" in line]
        raise RuntimeError(f"mvn could not fetch {ARTIFACT}: " + "\n".join(errors[:3] or [done.stderr]))
    partial.rename(_FOLDER)
