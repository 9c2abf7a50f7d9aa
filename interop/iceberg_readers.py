"""Readers of Iceberg tables, fetched once into `.interop/` of the checkout: Iceberg's Java library, DuckDB, Polars."""

import fcntl
import hashlib
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

from interop.kafka_artifacts import CACHE, FETCH_TIMEOUT_S, HERE, ToolMissingError

PROGRAMS = HERE / "clients" / "iceberg"
_JAR = "org.apache.iceberg:iceberg-spark-runtime-4.1_2.13:1.12.0"


def iceberg_jars() -> Path:
    if shutil.which("java") is None:
        raise ToolMissingError("Java is not installed; Iceberg's library needs Java 17 or newer.")
    return _fetched("iceberg", _JAR, _fetch_jar)


def python_readers() -> Path:
    wanted = (PROGRAMS / "requirements.txt").read_text()
    return _fetched("iceberg-readers", wanted + sys.version, _install)


def java_reader(jars: Path, url: str) -> list[str]:
    """A command that reads tables with Iceberg's own REST client. Hadoop's file systems are those of pyspark."""
    import pyspark

    classes = f"{jars}/*:{Path(pyspark.__file__).parent / 'jars'}/*"
    return ["java", "-XX:TieredStopAtLevel=1", "-cp", classes, str(PROGRAMS / "ReadTables.java"), url]


def python_reader(packages: Path, name: str, *arguments: str) -> tuple[list[str], dict[str, str]]:
    """A command that reads tables with DuckDB or Polars, and its environment."""
    return [sys.executable, str(PROGRAMS / name), *arguments], {**os.environ, "PYTHONPATH": str(packages)}


def _fetched(name: str, version: str, fetch: Callable[[Path], None]) -> Path:
    folder = CACHE / f"{name}-{hashlib.sha256(version.encode()).hexdigest()[:16]}"
    CACHE.mkdir(exist_ok=True)
    with (CACHE / f"lock.{name}").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not folder.is_dir():
            partial = folder.with_suffix(".partial")
            shutil.rmtree(partial, ignore_errors=True)
            fetch(partial)
            # The folder appears under its final name only when it is whole.
            partial.rename(folder)
    return folder


def _fetch_jar(folder: Path) -> None:
    mvn = shutil.which("mvn")
    if mvn is None:
        raise ToolMissingError("Maven (mvn) is not installed, so Iceberg's library cannot be fetched.")
    goal = [f"-Dartifact={_JAR}", f"-DoutputDirectory={folder}", "dependency:copy"]
    _run([mvn, "-B", "-ntp", "-f", str(HERE / "pom.xml"), *goal])


def _install(folder: Path) -> None:
    wanted = str(PROGRAMS / "requirements.txt")
    _run([sys.executable, "-m", "pip", "install", "-q", "--no-deps", "--target", str(folder), "-r", wanted])


def _run(command: list[str]) -> None:
    done = subprocess.run(command, capture_output=True, text=True, timeout=FETCH_TIMEOUT_S, check=False)
    if done.returncode != 0:
        raise ToolMissingError(f"could not fetch readers of Iceberg tables: {(done.stderr or done.stdout)[-500:]}")
