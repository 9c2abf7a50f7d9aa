"""Apache Kafka itself, fetched once from Maven Central into `.interop/` of the checkout."""

import fcntl
import hashlib
import re
import shutil
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path

HERE = Path(__file__).resolve().parent
CACHE = HERE.parent / ".interop"
OLDEST_JAVA = 17
FETCH_TIMEOUT_S = 500
OLD_CLIENT = "3.9.1"


class ToolMissingError(Exception):
    """A program that this harness needs is not here; the message is one sentence that says which."""


@dataclass(frozen=True, slots=True)
class KafkaArtifacts:
    version: str
    java: Path
    jars: Path
    preferred: Path | None = None
    """Jars that are used instead of others of the same content."""
    added: Path | None = None
    """Jars that are searched last."""

    def with_old_client(self) -> "KafkaArtifacts":
        """With the last client that does not support KIP-890's second part."""
        return replace(self, preferred=self.jars / OLD_CLIENT)

    def command(self, main_class: str, arguments: Sequence[str], *jvm_options: str) -> list[str]:
        """A JVM that starts fast rather than runs fast: most of what is run here lives for a second."""
        folders = [folder for folder in (self.preferred, self.jars, self.added) if folder is not None]
        return [
            str(self.java),
            "-XX:TieredStopAtLevel=1",
            "-XX:+UseSerialGC",
            "-Xshare:auto",
            # Java 17 would otherwise print in the locale's encoding; later releases already use UTF-8.
            "-Dfile.encoding=UTF-8",
            "-Dstdout.encoding=UTF-8",
            "-Djava.net.preferIPv4Stack=true",
            f"-Dlog4j2.configurationFile={HERE / 'log4j2.properties'}",
            *jvm_options,
            "-cp",
            ":".join(f"{folder}/*" for folder in folders),
            main_class,
            *arguments,
        ]


@cache
def kafka_artifacts() -> KafkaArtifacts:
    """Everything needed to run Kafka; fetches it if this checkout does not have it yet."""
    java = _java()
    pom = (HERE / "pom.xml").read_bytes()
    version = re.search(rb"<kafka.version>(.+?)</kafka.version>", pom)
    assert version is not None, "pom.xml names no kafka.version"
    # The folder appears under its final name only when it is whole, so the name is the marker.
    jars = CACHE / f"kafka-{hashlib.sha256(pom + OLD_CLIENT.encode()).hexdigest()[:16]}"
    if not jars.is_dir():
        with only_one_process():
            if not jars.is_dir():
                _fetch(jars)
    return KafkaArtifacts(version=version[1].decode(), java=java, jars=jars)


@contextmanager
def only_one_process() -> Iterator[None]:
    CACHE.mkdir(exist_ok=True)
    with (CACHE / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def _fetch(jars: Path) -> None:
    mvn = shutil.which("mvn")
    if mvn is None:
        raise ToolMissingError("Maven (mvn) is not installed, so Apache Kafka cannot be fetched.")
    for stale in CACHE.glob("kafka-*"):
        shutil.rmtree(stale)
    partial = CACHE / "partial"
    shutil.rmtree(partial, ignore_errors=True)
    _run_maven(mvn, "dependency:copy-dependencies", "-DincludeScope=runtime", f"-DoutputDirectory={partial}")
    old_client = f"-Dartifact=org.apache.kafka:kafka-clients:{OLD_CLIENT}"
    _run_maven(mvn, "dependency:copy", old_client, f"-DoutputDirectory={partial / OLD_CLIENT}")
    partial.rename(jars)


def _run_maven(mvn: str, *goal: str) -> None:
    command = [mvn, "-B", "-ntp", "-f", str(HERE / "pom.xml"), *goal]
    done = subprocess.run(command, capture_output=True, text=True, timeout=FETCH_TIMEOUT_S, check=False)
    if done.returncode != 0:
        errors = [line for line in done.stdout.splitlines() if "ERROR" in line]
        raise RuntimeError("mvn could not fetch Apache Kafka: " + "\n".join(errors[:3] or [done.stderr]))


def _java() -> Path:
    found = shutil.which("java")
    if found is None:
        raise ToolMissingError(f"Java is not installed; Apache Kafka needs Java {OLDEST_JAVA} or newer.")
    told = subprocess.run([found, "-version"], capture_output=True, text=True, timeout=60, check=False).stderr
    version = re.search(r'version "(\d+)', told)
    if version is None or int(version[1]) < OLDEST_JAVA:
        raise ToolMissingError(f"Apache Kafka needs Java {OLDEST_JAVA} or newer; {found} is {told.strip()!r}.")
    return Path(found)
