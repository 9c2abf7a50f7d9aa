"""Replaces the `cython` module when the codec runs as plain Python, so that Cython is not a dependency.

Decorators do nothing and C types are placeholders: annotations are never evaluated. Checks that C does
implicitly, for overflow and contiguous buffers, are explicit here.
"""

from __future__ import annotations

import sys
import warnings
from operator import index
from typing import TYPE_CHECKING, Any, SupportsIndex, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable

_T = TypeVar("_T")

compiled = False


def _unchanged(thing: _T) -> _T:
    return thing


cclass = final = no_gc = cfunc = ccall = inline = _unchanged


def nonecheck(_is_on: bool) -> Callable[[_T], _T]:  # noqa: FBT001
    return _unchanged


def freelist(_size: int) -> Callable[[_T], _T]:
    return _unchanged


def exceptval(_value: object = None, *, check: bool = True) -> Callable[[_T], _T]:  # noqa: ARG001
    return _unchanged


def declare(_kind: object, value: _T | None = None, visibility: str = "private") -> _T | None:  # noqa: ARG001
    return value


def cast(_kind: object, thing: _T) -> _T:
    return thing


def __getattr__(name: str) -> str:
    return name


class _Nogil:
    """Both a decorator and a context manager."""

    def __call__(self, thing: _T) -> _T:
        return thing

    def __enter__(self) -> None:
        pass

    def __exit__(self, *_: object) -> None:
        pass


nogil = _Nogil()

cython: Any = sys.modules[__name__]


def int32(value: SupportsIndex) -> int:
    """The number, if it fits 32 bits."""
    number = index(value)
    if not -0x80000000 <= number <= 0x7FFFFFFF:
        raise OverflowError(f"{number} exceeds 32 bits")
    return number


def int64(value: SupportsIndex) -> int:
    """The number, if it fits 64 bits."""
    number = index(value)
    if not -0x8000000000000000 <= number <= 0x7FFFFFFFFFFFFFFF:
        raise OverflowError(f"{number} exceeds 64 bits")
    return number


def flat(source: object, *, is_writable: bool = False) -> memoryview:
    """The bytes of a buffer, with the checks of PyObject_GetBuffer."""
    view = memoryview(source)  # type: ignore[arg-type]  # a TypeError otherwise
    if not view.c_contiguous:
        raise BufferError("the buffer is not contiguous")
    if is_writable and view.readonly:
        raise BufferError("the buffer is not writable")
    return view.cast("B") if view.nbytes else memoryview(bytearray())


class UncompiledWarning(RuntimeWarning):
    """The record codec is not compiled: correct, but many times slower."""


def warn_if_uncompiled() -> None:
    from ottla.records import payload  # noqa: PLC0415 - it imports this module

    if not payload.IS_COMPILED:
        warnings.warn(
            "ottla's record codec is not compiled and will be slow; install a C compiler and reinstall ottla",
            UncompiledWarning,
            stacklevel=3,
        )
