"""The files of a table in an object store, by the package obstore."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, Self, TypeVar

import obstore
from obstore.exceptions import AlreadyExistsError, BaseError, NotFoundError, PreconditionError
from obstore.store import from_url

from ottla.core.errors import OttlaError
from ottla.spark.archive.objects import RangedFile
from ottla.spark.pipelines.stores.addresses import joined, without_scheme
from ottla.spark.pipelines.stores.files import Content, FileInfo, TableBusy
from ottla.spark.pipelines.stores.options import delta_options, iceberg_properties, obstore_config
from ottla.spark.pipelines.stores.refusals import reason_in
from ottla.spark.pipelines.stores.secrets import redacted

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from datetime import timedelta

    import pyarrow as pa
    from obstore.store import ObjectStore

    from ottla.spark.pipelines.stores.settings import StorageSettings

_GONE: Final = (NotFoundError, FileNotFoundError)
_AT_ONCE: Final = 1000
"""Objects that are removed with one request, as S3 limits it."""
_Done = TypeVar("_Done")


class StoreFailed(OttlaError):
    """An object store refused a request, or did not answer."""


class ObjectFiles:
    def __init__(self, address: str, settings: StorageSettings, store: ObjectStore | None = None) -> None:
        self.root = address.rstrip("/")
        self.settings = settings
        self.delta_options = delta_options(address, settings)
        self.iceberg_properties = iceberg_properties(address, settings)
        self._store = store or opened_store(self.root, settings)

    def address(self, name: str) -> str:
        return joined(self.root, name)

    place = address

    def name_of(self, address: str) -> str | None:
        base = f"{without_scheme(self.root)}/"
        path = without_scheme(address)
        return path.removeprefix(base) if path.startswith(base) else None

    def at(self, place: str) -> ObjectFiles:
        return ObjectFiles(place, self.settings)

    def exists(self, folder: str) -> bool:  # noqa: ARG002 - the next request tells it as well
        return True

    def listed(self, under: str = "") -> list[FileInfo]:
        def listing() -> list[FileInfo]:
            return [
                FileInfo(each["path"], each["size"], each["last_modified"].timestamp())
                for page in obstore.list(self._store, prefix=under or None)
                for each in page
            ]

        return self._done("list", under, listing)

    def info(self, name: str) -> FileInfo:
        about = self._done("look at", name, lambda: obstore.head(self._store, name))
        return FileInfo(name, about["size"], about["last_modified"].timestamp())

    def read(self, name: str) -> Content | None:
        def reading() -> Content:
            found = obstore.get(self._store, name)
            return Content(bytes(found.bytes()), found.meta["e_tag"])

        try:
            return self._done("read", name, reading)
        except FileNotFoundError:
            return None

    def replace(self, name: str, data: bytes) -> None:
        self._done("write", name, lambda: obstore.put(self._store, name, data))

    def replace_version(self, name: str, data: bytes, version: str | None) -> None:
        mode: Any = "create" if version is None else {"e_tag": version}
        try:
            self._done("write", name, lambda: obstore.put(self._store, name, data, mode=mode))
        except (AlreadyExistsError, PreconditionError):
            raise TableBusy(f"{self.place(name)} was written by another process in the meantime") from None

    def move(self, source: str, target: str) -> None:
        self._done("copy", source, lambda: obstore.copy(self._store, source, target))
        self.remove([source])

    def remove(self, names: Iterable[str]) -> None:
        every = list(names)
        for start in range(0, len(every), _AT_ONCE):
            some = every[start : start + _AT_ONCE]
            try:
                self._done("remove", some[0], lambda: obstore.delete(self._store, some))  # noqa: B023 - called at once
            except FileNotFoundError:
                self._remove_one_by_one(some)

    def _remove_one_by_one(self, names: list[str]) -> None:
        """Stores other than S3 stop at the first that is missing."""
        for name in names:
            try:
                self._done("remove", name, lambda: obstore.delete(self._store, name))  # noqa: B023 - called at once
            except FileNotFoundError:
                continue

    def source(self, name: str) -> pa.NativeFile:
        return self._done("open", name, lambda: RangedFile(self._store, name, obstore.head(self._store, name)["size"]))

    def sink(self, name: str) -> Upload:
        writer = obstore.open_writer(self._store, name)
        return Upload(writer, lambda: self._done("write", name, writer.close))

    def _done(self, what: str, name: str, request: Callable[[], _Done]) -> _Done:
        try:
            return request()
        except _GONE as gone:
            raise FileNotFoundError(self.place(name)) from gone
        except (AlreadyExistsError, PreconditionError):
            raise
        except (BaseError, OSError) as refused:
            raise StoreFailed(f"cannot {what} {self.place(name)}: {reason(refused, self.settings)}") from None


class Upload:
    """A file that pyarrow writes to. An object is there once it is closed, and never if writing failed."""

    closed = False

    def __init__(self, writer: obstore.WritableFile, finish: Callable[[], None]) -> None:
        self._writer = writer
        self._finish = finish

    def write(self, data: bytes | memoryview) -> int:
        return int(self._writer.write(bytes(data)))

    def flush(self) -> None:
        """It is sent in parts of the store's size."""

    def close(self) -> None:
        if not self.closed:
            self.closed = True
            self._finish()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if kind is None:
            self.close()


def opened_store(address: str, settings: StorageSettings, patience: timedelta | None = None) -> ObjectStore:
    retries: Any = None if patience is None else {"max_retries": 1, "retry_timeout": patience}
    client: Any = {"allow_http": settings.allow_http}
    if patience is not None:
        client |= {"connect_timeout": patience, "timeout": patience}
    return from_url(
        address,
        config=obstore_config(address, settings),
        client_options=client,
        retry_config=retries,
    )


def reason(refused: Exception, settings: StorageSettings) -> str:
    return redacted(reason_in(str(refused)), settings.secrets)[:500]
