"""A checkpoint's folder: local, or any file system of Spark's."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from ottla.core.errors import ConfigError

if TYPE_CHECKING:
    from py4j.java_gateway import JavaObject
    from pyspark.sql import SparkSession


class Folder(Protocol):
    path: str

    def has_files(self, name: str) -> bool: ...
    def read(self, name: str) -> str | None: ...
    def write(self, name: str, text: str) -> None: ...


def folder_at(spark: SparkSession, path: str) -> Folder:
    if "://" not in path or path.startswith("file://"):
        return LocalFolder(Path(path.removeprefix("file://")).absolute())
    if getattr(spark, "_jvm", None) is None:
        raise ConfigError(f"with Spark Connect the checkpoint must be a local folder, got {path}")
    return RemoteFolder(spark, path)


class LocalFolder:
    def __init__(self, folder: Path) -> None:
        self.path = str(folder)
        self._folder = folder

    def has_files(self, name: str) -> bool:
        place = self._folder / name
        return place.is_dir() and any(not each.name.startswith(".") for each in place.iterdir())

    def read(self, name: str) -> str | None:
        try:
            return (self._folder / name).read_text("utf-8")
        except FileNotFoundError:
            return None

    def write(self, name: str, text: str) -> None:
        place = self._folder / name
        place.parent.mkdir(parents=True, exist_ok=True)
        new = place.with_name(f".{place.name}.new")
        new.write_text(text, "utf-8")
        new.replace(place)


class RemoteFolder:
    """Through Hadoop's file systems, as Spark writes its checkpoint."""

    def __init__(self, spark: SparkSession, path: str) -> None:
        self.path = path.rstrip("/")
        jvm: Any = spark._jvm  # noqa: SLF001 - there is no other way to these
        self._hadoop = jvm.org.apache.hadoop.fs
        self._to_text = jvm.org.apache.commons.io.IOUtils.toString
        session: Any = spark._jsparkSession  # noqa: SLF001
        self._files = self._at("").getFileSystem(session.sessionState().newHadoopConf())

    def _at(self, name: str) -> JavaObject:
        return self._hadoop.Path(f"{self.path}/{name}" if name else self.path)

    def has_files(self, name: str) -> bool:
        place = self._at(name)
        return bool(self._files.exists(place)) and len(self._files.listStatus(place)) > 0

    def read(self, name: str) -> str | None:
        place = self._at(name)
        if not self._files.exists(place):
            return None
        opened = self._files.open(place)
        try:
            return str(self._to_text(opened, "UTF-8"))
        finally:
            opened.close()

    def write(self, name: str, text: str) -> None:
        opened = self._files.create(self._at(name), True)  # noqa: FBT003 - Java's argument: overwrite
        opened.write(bytearray(text, "utf-8"))
        opened.close()
