"""Spark's own Kafka connector, fetched once from Maven Central into `.interop/` of the checkout."""

import fcntl
import hashlib
import shutil
import subprocess
from pathlib import Path

from interop.kafka_artifacts import CACHE, FETCH_TIMEOUT_S, HERE, ToolMissingError

_POM = HERE / "spark-connector-pom.xml"
_NOT_IN_SPARK = ("spark-sql-kafka", "spark-token-provider-kafka", "kafka-clients", "commons-pool2")


def connector_jars() -> str:
    """What to give Spark as `spark.jars`; fetches it if this checkout does not have it yet."""
    folder = CACHE / f"spark-connector-{hashlib.sha256(_POM.read_bytes()).hexdigest()[:16]}"
    CACHE.mkdir(exist_ok=True)
    with (CACHE / "spark-connector.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not folder.is_dir():
            _fetch(folder)
    return ",".join(str(jar) for jar in sorted(folder.glob("*.jar")) if jar.name.startswith(_NOT_IN_SPARK))


def _fetch(folder: Path) -> None:
    mvn = shutil.which("mvn")
    if mvn is None:
        raise ToolMissingError("Maven (mvn) is not installed, so Spark's Kafka connector cannot be fetched.")
    partial = folder.with_suffix(".partial")
    shutil.rmtree(partial, ignore_errors=True)
    command = [mvn, "-B", "-ntp", "-f", str(_POM), "dependency:copy-dependencies"]
    options = ["-DincludeScope=runtime", f"-DoutputDirectory={partial}"]
    done = subprocess.run(command + options, capture_output=True, text=True, timeout=FETCH_TIMEOUT_S, check=False)
    if done.returncode != 0:
        errors = [line for line in done.stdout.splitlines() if "ERROR" in line]
        raise RuntimeError("mvn could not fetch Spark's Kafka connector: " + "\n".join(errors[:3] or [done.stderr]))
    # The folder appears under its final name only when it is whole.
    partial.rename(folder)
