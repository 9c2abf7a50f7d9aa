"""What mypy needs to know of Cython's pure-Python mode: the part this project uses, read as plain Python.

`cython.compiled` is never true here (pyproject.toml), so nothing that only C understands is listed.
"""

import builtins
from collections.abc import Callable
from typing import Any, TypeAlias, TypeVar, overload

_T = TypeVar("_T")

compiled: bool

int: TypeAlias = builtins.int  # noqa: A001
uint: TypeAlias = builtins.int
longlong: TypeAlias = builtins.int
ulonglong: TypeAlias = builtins.int
uchar: TypeAlias = builtins.int
double: TypeAlias = builtins.float
short: TypeAlias = builtins.int
Py_ssize_t: TypeAlias = builtins.int
bint: TypeAlias = bool
void: TypeAlias = None

p_uchar: TypeAlias = memoryview
p_const_uchar: TypeAlias = memoryview | bytes

def cclass(c: type[_T]) -> type[_T]: ...
def final(c: type[_T]) -> type[_T]: ...
def no_gc(c: type[_T]) -> type[_T]: ...
def nonecheck(is_on: bool) -> Callable[[_T], _T]: ...
def freelist(size: builtins.int) -> Callable[[type[_T]], type[_T]]: ...
def cfunc(f: _T) -> _T: ...
def ccall(f: _T) -> _T: ...
def inline(f: _T) -> _T: ...
def exceptval(value: object = ..., check: bool = ...) -> Callable[[_T], _T]: ...
@overload
def declare(kind: type[bool], value: bool = ..., visibility: str = ...) -> bool: ...
@overload
def declare(kind: type[builtins.int], value: builtins.int = ..., visibility: str = ...) -> builtins.int: ...
@overload
def declare(kind: type[float], value: float = ..., visibility: str = ...) -> float: ...
@overload
def declare(kind: object, value: object = ..., visibility: str = ...) -> Any: ...  # noqa: ANN401

class _Nogil:
    def __call__(self, f: _T) -> _T: ...
    def __enter__(self) -> None: ...
    def __exit__(self, *_: object) -> None: ...

nogil: _Nogil

def cast(kind: object, thing: object) -> Any: ...  # noqa: ANN401
