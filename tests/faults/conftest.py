from __future__ import annotations

import logging
from contextlib import ExitStack
from typing import TYPE_CHECKING

import pytest

from .mounting import CannotMount, tmpfs

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


@pytest.fixture
def in_memory(tmp_path: Path) -> Iterator[Path]:
    """A folder for thousands of small files: in memory if possible, otherwise on disk."""
    with ExitStack() as stack:
        try:
            folder = stack.enter_context(tmpfs(tmp_path / "memory", "512m"))
        except CannotMount:
            folder = tmp_path
        yield folder


class Told(logging.Handler):
    """The log lines that an operator would read. (pytest's fixture would keep those of thousands of rounds.)"""

    def __init__(self) -> None:
        super().__init__()
        self.records: list[logging.LogRecord] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.records.append(record)

    @property
    def text(self) -> str:
        return "\n".join(record.getMessage() for record in self.records)

    def clear(self) -> None:
        self.records.clear()


@pytest.fixture
def told(monkeypatch: pytest.MonkeyPatch) -> Iterator[Told]:
    handler = Told()
    logger = logging.getLogger("ottla")
    monkeypatch.setattr(logger, "propagate", False)
    logger.addHandler(handler)
    yield handler
    logger.removeHandler(handler)
