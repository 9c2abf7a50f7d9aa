"""Python source code under construction, and its namespace."""

from __future__ import annotations

import struct
from contextlib import contextmanager
from functools import cache
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator


@cache
def precompiled(formats: str) -> struct.Struct:
    """One big-endian `struct.Struct` per run of fixed fields, shared by every codec that has such a run."""
    return struct.Struct(">" + formats)


@cache
def unpacker(formats: str) -> Callable[[memoryview, int], tuple[Any, ...]]:
    return precompiled(formats).unpack_from


@cache
def packer(formats: str) -> Callable[..., bytes]:
    return precompiled(formats).pack


class Source:
    """Lines of a generated module, and its globals."""

    def __init__(self, names: dict[str, Any]) -> None:
        self.names = names
        self._lines: list[str] = []
        self._indent = 0

    def line(self, text: str) -> None:
        self._lines.append("    " * self._indent + text)

    @contextmanager
    def block(self, opening: str) -> Iterator[None]:
        self.line(opening)
        self._indent += 1
        yield
        self._indent -= 1

    def name(self, wanted: str, value: object) -> str:
        """A name for an object: the wanted one, or with a number if it is taken."""
        unique, number = wanted, 1
        while self.names.setdefault(unique, value) is not value:
            number += 1
            unique = f"{wanted}_{number}"
        return unique

    @property
    def text(self) -> str:
        return "\n".join(self._lines) + "\n"
