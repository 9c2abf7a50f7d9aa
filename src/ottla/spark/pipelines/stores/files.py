"""The files of a table by names relative to its root, in a folder or in an object store."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, Protocol

from ottla.core.errors import OttlaError
from ottla.spark.pipelines.stores.settings import StorageSettings

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    import pyarrow as pa


class TableBusy(OttlaError):
    """Another process has written to the table in the meantime."""


class FileInfo(NamedTuple):
    name: str
    size: int
    modified_s: float


class Content(NamedTuple):
    data: bytes
    version: str | None
    """Used by a store to detect replacement."""


class Files(Protocol):
    @property
    def root(self) -> str:
        """As deltalake takes it."""

    @property
    def settings(self) -> StorageSettings: ...

    @property
    def delta_options(self) -> Mapping[str, str] | None: ...

    @property
    def iceberg_properties(self) -> Mapping[str, str]: ...

    def address(self, name: str) -> str:
        """As Iceberg's metadata says it."""

    def name_of(self, address: str) -> str | None:
        """The name behind an address; None for a file that is elsewhere."""

    def place(self, name: str) -> str:
        """The same for people, Spark and deltalake: a path where the file is on this machine."""

    def at(self, place: str) -> Files:
        """Another root, reached in the same way."""

    def exists(self, folder: str) -> bool:
        """Whether there may be something in a folder; where that takes a request, it may."""

    def listed(self, under: str = "") -> list[FileInfo]:
        """All files in a folder and its subfolders."""

    def info(self, name: str) -> FileInfo:
        """Raises FileNotFoundError if it is missing, as `move` does."""

    def read(self, name: str) -> Content | None:
        """None if it is missing."""

    def replace(self, name: str, data: bytes) -> None:
        """All of it or nothing."""

    def replace_version(self, name: str, data: bytes, version: str | None) -> None:
        """The same; raises TableBusy if it is not this version any more, where a store can tell."""

    def move(self, source: str, target: str) -> None: ...

    def remove(self, names: Iterable[str]) -> None:
        """Those that are missing do not matter."""

    def source(self, name: str) -> pa.NativeFile: ...

    def sink(self, name: str) -> pa.NativeFile: ...


class LocalFiles:
    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.root = str(folder)
        self.settings = StorageSettings()
        self.delta_options = None
        self.iceberg_properties: dict[str, str] = {}

    def address(self, name: str) -> str:
        # As pyiceberg reads it: with nothing escaped.
        return f"file://{self.folder / name}"

    def name_of(self, address: str) -> str | None:
        path = Path(address.removeprefix("file://"))
        return str(path.relative_to(self.folder)) if path.is_relative_to(self.folder) else None

    def place(self, name: str) -> str:
        return str(self.folder / name)

    def at(self, place: str) -> LocalFiles:
        return LocalFiles(Path(place.removeprefix("file://")))

    def exists(self, folder: str) -> bool:
        return (self.folder / folder).is_dir()

    def listed(self, under: str = "") -> list[FileInfo]:
        found = []
        for path in (self.folder / under).rglob("*"):
            try:
                about = path.stat()
            except FileNotFoundError:
                continue  # removed in the meantime
            if path.is_file():
                found.append(FileInfo(str(path.relative_to(self.folder)), about.st_size, about.st_mtime))
        return found

    def info(self, name: str) -> FileInfo:
        about = (self.folder / name).stat()
        return FileInfo(name, about.st_size, about.st_mtime)

    def read(self, name: str) -> Content | None:
        try:
            return Content((self.folder / name).read_bytes(), None)
        except FileNotFoundError:
            return None

    def replace(self, name: str, data: bytes) -> None:
        file = self.folder / name
        file.parent.mkdir(parents=True, exist_ok=True)
        new = file.with_suffix(".new")
        with new.open("wb") as opened:
            opened.write(data)
            opened.flush()
            os.fsync(opened.fileno())
        new.replace(file)

    def replace_version(self, name: str, data: bytes, version: str | None) -> None:  # noqa: ARG002 - a lock guards it
        self.replace(name, data)

    def move(self, source: str, target: str) -> None:
        place = self.folder / target
        place.parent.mkdir(parents=True, exist_ok=True)
        (self.folder / source).replace(place)

    def remove(self, names: Iterable[str]) -> None:
        for name in names:
            (self.folder / name).unlink(missing_ok=True)

    def source(self, name: str) -> Path:
        return self.folder / name

    def sink(self, name: str) -> pa.NativeFile:
        file = self.folder / name
        file.parent.mkdir(parents=True, exist_ok=True)
        return file.open("wb")
