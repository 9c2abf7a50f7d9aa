"""An archive in an object store such as S3. The writer holds a lease: an object with conditional writes."""

from __future__ import annotations

import io
import json
import secrets
import tempfile
import time
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Final

import obstore
from obstore.exceptions import AlreadyExistsError, NotFoundError, PreconditionError
from obstore.store import from_url

from ottla.spark.archive.errors import ArchiveInUse

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    import pyarrow as pa
    from _typeshed import WriteableBuffer
    from obstore.store import ObjectStore

_LEASE: Final = "_lease.json"
LEASE_S: Final = 60.0
"""A lease that was not renewed for this long may be taken over."""


class ObjectPlace:
    def __init__(self, store: ObjectStore, clock: Callable[[], float] = time.time) -> None:
        self._store = store
        self._clock = clock

    @classmethod
    def at(cls, url: str) -> ObjectPlace:
        """Settings such as AWS_REGION and AWS_ENDPOINT are taken from the environment."""
        return cls(from_url(url))

    def sizes(self) -> dict[str, int]:
        return {
            each["path"]: each["size"]
            for page in obstore.list(self._store)
            for each in page
            if each["path"].endswith(".parquet")
        }

    def open(self, name: str) -> pa.NativeFile:
        try:
            return RangedFile(self._store, name, obstore.head(self._store, name)["size"])
        except NotFoundError as gone:
            raise FileNotFoundError(name) from gone

    def remove(self, name: str) -> None:
        try:
            obstore.delete(self._store, name)
        except (NotFoundError, FileNotFoundError):
            return

    @contextmanager
    def held(self) -> Iterator[ObjectArchiveLock]:
        lease = _Lease(self._store, self._clock)
        lease.take()
        try:
            with tempfile.TemporaryDirectory(prefix="ottla-archive-") as scratch:
                yield ObjectArchiveLock(self._store, Path(scratch), lease)
        finally:
            lease.give_back()


class RangedFile(io.RawIOBase):
    """A random-access reader of an object; it fetches only the requested ranges."""

    def __init__(self, store: ObjectStore, name: str, size: int) -> None:
        self._store = store
        self._name = name
        self._size = size
        self._position = 0

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def tell(self) -> int:
        return self._position

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        base = {io.SEEK_SET: 0, io.SEEK_CUR: self._position, io.SEEK_END: self._size}[whence]
        self._position = base + offset
        return self._position

    def readinto(self, into: WriteableBuffer) -> int:
        view = memoryview(into)
        length = min(len(view), self._size - self._position)
        if length <= 0:
            return 0
        fetched = obstore.get_range(self._store, self._name, start=self._position, length=length)
        view[:length] = memoryview(fetched)
        self._position += length
        return length


class ObjectArchiveLock:
    def __init__(self, store: ObjectStore, scratch: Path, lease: _Lease) -> None:
        self._store = store
        self._lease = lease
        self.scratch = scratch

    def publish(self, made: Path, name: str) -> None:
        self._lease.renew()
        obstore.put(self._store, name, made)
        made.unlink()

    def confirm(self) -> None:
        self._lease.renew()


class _Lease:
    def __init__(self, store: ObjectStore, clock: Callable[[], float]) -> None:
        self._store = store
        self._clock = clock
        self._name = secrets.token_hex(8)
        self._tag: str | None = None

    def take(self) -> None:
        try:
            self._put("create")
        except AlreadyExistsError:
            self._take_over()

    def _take_over(self) -> None:
        try:
            found = obstore.get(self._store, _LEASE)
        except (NotFoundError, FileNotFoundError):
            raise ArchiveInUse("another archiver has just ended; try again") from None
        until = json.loads(bytes(found.bytes()))["until"]
        if until > self._clock():
            left_s = until - self._clock()
            raise ArchiveInUse(
                f"another archiver is at work here, or was killed; it has the right to write for {left_s:.0f} s more"
            )
        self._replace(found.meta["e_tag"])

    def renew(self) -> None:
        self._replace(self._tag)

    def give_back(self) -> None:
        """Release the lease, so that the next writer need not wait."""
        try:
            self.renew()
        except ArchiveInUse:
            return
        obstore.delete(self._store, _LEASE)

    def _replace(self, tag: str | None) -> None:
        try:
            self._put({"e_tag": tag})
        except (PreconditionError, NotFoundError, FileNotFoundError):
            raise ArchiveInUse("another archiver has taken over") from None

    def _put(self, mode: object) -> None:
        content = json.dumps({"holder": self._name, "until": self._clock() + LEASE_S}).encode()
        self._tag = obstore.put(self._store, _LEASE, content, mode=mode)["e_tag"]
