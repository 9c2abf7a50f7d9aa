"""A pipeline's state beside its checkpoints: inferred schemas, fingerprints of checkpoints, the running process."""

from __future__ import annotations

import fcntl
import json
import os
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final

from ottla.core.errors import OttlaError

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

_SCHEMAS: Final = "schemas.json"
_FINGERPRINTS: Final = "fingerprints.json"
_LOCK: Final = "lock"
_STOP: Final = "stop"


class StateFolder:
    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def schemas(self) -> dict[str, str]:
        """By source: inferred schemas, which are kept."""
        return self._read(_SCHEMAS)

    def pin_schemas(self, schemas: dict[str, str]) -> None:
        self._write(_SCHEMAS, self.schemas() | schemas)

    def fingerprints(self) -> dict[str, Any]:
        """By query: the fingerprint of its checkpoint."""
        return self._read(_FINGERPRINTS)

    def keep_fingerprint(self, query: str, fingerprint: dict[str, Any]) -> None:
        self._write(_FINGERPRINTS, self.fingerprints() | {query: fingerprint})

    def keep_failure(self, query: str, text: str) -> Path:
        """Write the whole text of a failure to a file; the terminal shows one line."""
        file = self.folder / f"{query}.failure.txt"
        file.write_text(text, "utf-8")
        return file

    @contextmanager
    def held(self) -> Iterator[None]:
        """Lock the folder: two processes would overwrite each other's checkpoints."""
        self.folder.mkdir(parents=True, exist_ok=True)
        with (self.folder / _LOCK).open("a+") as lock:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                raise OttlaError(f"the pipeline is running already; {self.folder} is in use") from None
            (self.folder / _STOP).unlink(missing_ok=True)
            yield

    def is_held(self) -> bool:
        try:
            with (self.folder / _LOCK).open("r+") as lock:
                fcntl.flock(lock, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except FileNotFoundError:
            return False
        except BlockingIOError:
            return True
        return False

    def ask_to_stop(self) -> None:
        (self.folder / _STOP).touch()

    def is_asked_to_stop(self) -> bool:
        return (self.folder / _STOP).exists()

    def _read(self, name: str) -> dict[str, Any]:
        try:
            content: dict[str, Any] = json.loads((self.folder / name).read_text("utf-8"))
        except FileNotFoundError:
            return {}
        except ValueError:
            raise OttlaError(f"{self.folder / name} is damaged; restore it, or use a new state folder") from None
        return content

    def _write(self, name: str, content: dict[str, Any]) -> None:
        self.folder.mkdir(parents=True, exist_ok=True)
        new = self.folder / f"{name}.new"
        with new.open("w", encoding="utf-8") as opened:
            json.dump(content, opened, indent=1, sort_keys=True)
            opened.flush()
            os.fsync(opened.fileno())
        new.replace(self.folder / name)
