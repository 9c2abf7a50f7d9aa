"""A simulated disk: records all writes, and reproduces states that a power cut may leave.

Only what POSIX promises counts as durable: a file's bytes once the file is synced, its name once its folder is synced.
After that, each page of a file (and its length) may be in any state since the last sync, and a prefix of the changes to
a folder may survive, since file systems journal them in order.
"""

from __future__ import annotations

import os
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import random
    from collections.abc import Iterator

PAGE = 512
"""Smaller than a real page, so that a batch of a few hundred bytes can be torn."""


class File:
    def __init__(self) -> None:
        self.states: list[tuple[int, bytes]] = [(0, b"")]
        """The contents after each change, and when that was."""
        self.synced: list[int] = []

    @property
    def content(self) -> bytes:
        return self.states[-1][1]

    def change(self, now: int, content: bytes) -> None:
        self.states.append((now, content))

    def possible(self, now: int, chance: random.Random) -> bytes:
        """A possible state after a power cut."""
        until = max((time for time in self.synced if time <= now), default=0)
        past = [content for time, content in self.states if time <= until]
        since = [past[-1] if past else b"", *(content for time, content in self.states if until < time <= now)]
        match chance.randrange(4):
            case 0:
                return since[0]
            case 1:
                return since[-1]
        left = b""
        for start in range(0, max(map(len, since)), PAGE):
            page = chance.choice(since)[start : start + PAGE]
            left += page + bytes(PAGE - len(page))
        return left[: len(chance.choice(since))]


class Folder:
    def __init__(self) -> None:
        self.states: list[tuple[int, dict[str, File | Folder]]] = [(0, {})]
        self.synced: list[int] = []

    @property
    def entries(self) -> dict[str, File | Folder]:
        return self.states[-1][1]

    def change(self, now: int, entries: dict[str, File | Folder]) -> None:
        self.states.append((now, entries))

    def lay_out(self, now: int, chance: random.Random, target: Path) -> None:
        """Create a real folder in a possible state after a power cut."""
        until = max((time for time in self.synced if time <= now), default=0)
        past = [entries for time, entries in self.states if time <= until]
        since = [past[-1], *(entries for time, entries in self.states if until < time <= now)]
        target.mkdir()
        for name, entry in chance.choice((since[0], since[-1], chance.choice(since))).items():
            if isinstance(entry, Folder):
                entry.lay_out(now, chance, target / name)
            else:
                (target / name).write_bytes(entry.possible(now, chance))


class Recorder:
    """Records every change to the files below a folder."""

    def __init__(self, root: Path) -> None:
        self.now = 0
        self.root = Folder()
        self._path = root
        self._open: dict[int, File | Folder] = {}
        self._really = {name: getattr(os, name) for name in _CALLS}
        root.mkdir()

    @contextmanager
    def recording(self) -> Iterator[None]:
        for name in _CALLS:
            setattr(os, name, getattr(self, name))
        try:
            yield
        finally:
            for name, call in self._really.items():
                setattr(os, name, call)

    def lay_out(self, now: int, chance: random.Random, target: Path) -> None:
        self.root.lay_out(now, chance, target)

    def _find(self, path: Any) -> tuple[Folder, str]:
        """The parent folder of a file, and its name."""
        *above, name = Path(path).relative_to(self._path).parts or ("",)
        folder = self.root
        for part in above:
            inner = folder.entries[part]
            assert isinstance(inner, Folder)
            folder = inner
        return folder, name

    def _get(self, path: Any) -> File | Folder | None:
        folder, name = self._find(path)
        return folder.entries.get(name) if name else folder

    def _tick(self) -> int:
        self.now += 1
        return self.now

    # System calls, by name

    def open(self, path: Any, flags: int, *args: Any, **options: Any) -> int:
        fd: int = self._really["open"](path, flags, *args, **options)
        if not Path(path).is_relative_to(self._path):
            return fd
        entry = self._get(path)
        if entry is None:
            folder, name = self._find(path)
            entry = File()
            folder.change(self._tick(), {**folder.entries, name: entry})
        elif flags & os.O_TRUNC and isinstance(entry, File) and entry.content:
            entry.change(self._tick(), b"")
        self._open[fd] = entry
        return fd

    def dup(self, fd: int) -> int:
        copy: int = self._really["dup"](fd)
        self._open[copy] = self._open[fd]
        return copy

    def close(self, fd: int) -> None:
        self._really["close"](fd)
        self._open.pop(fd, None)

    def pwrite(self, fd: int, data: Any, position: int) -> int:
        written: int = self._really["pwrite"](fd, data, position)
        file = self._file(fd)
        before = file.content.ljust(position, b"\0")
        file.change(self._tick(), before[:position] + bytes(data)[:written] + before[position + written :])
        return written

    def ftruncate(self, fd: int, size: int) -> None:
        self._really["ftruncate"](fd, size)
        self._cut(self._file(fd), size)

    def truncate(self, path: Any, size: int) -> None:
        self._really["truncate"](path, size)
        file = self._get(path)
        assert isinstance(file, File)
        self._cut(file, size)

    def fsync(self, fd: int) -> None:
        self._open[fd].synced.append(self._tick())

    def rename(self, old: Any, new: Any) -> None:
        self._really["rename"](old, new)
        folder, name = self._find(old)
        other, new_name = self._find(new)
        assert other is folder
        entries = dict(folder.entries)
        entries[new_name] = entries.pop(name)
        folder.change(self._tick(), entries)

    def replace(self, old: Any, new: Any) -> None:
        self.rename(old, new)

    def unlink(self, path: Any) -> None:
        self._really["unlink"](path)
        folder, name = self._find(path)
        folder.change(self._tick(), {known: entry for known, entry in folder.entries.items() if known != name})

    def mkdir(self, path: Any, *args: Any) -> None:
        self._really["mkdir"](path, *args)
        folder, name = self._find(path)
        folder.change(self._tick(), {**folder.entries, name: Folder()})

    def _file(self, fd: int) -> File:
        file = self._open[fd]
        assert isinstance(file, File)
        return file

    def _cut(self, file: File, size: int) -> None:
        if len(file.content) != size:
            file.change(self._tick(), file.content[:size].ljust(size, b"\0"))


_CALLS = (
    "open", "dup", "close", "pwrite", "ftruncate", "truncate", "fsync", "rename", "replace", "unlink", "mkdir",
)  # fmt: skip
