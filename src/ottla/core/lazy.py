"""Modules that are imported when they are first used, in code that mypy checks as if they were imported directly."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import ModuleType


class LazyModule:
    """A placeholder for a module until one of its names is used."""

    __slots__ = ("_name",)

    def __init__(self, name: str) -> None:
        self._name = name

    def __getattr__(self, name: str) -> object:
        return getattr(import_module(self._name), name)


def importer_of_modules(package: str) -> Callable[[str], ModuleType]:
    """A package's `__getattr__` (PEP 562) that imports its modules."""

    def __getattr__(name: str) -> ModuleType:  # noqa: N807
        module = f"{package}.{name}"
        try:
            return import_module(module)
        except ModuleNotFoundError as missing:
            if missing.name != module:  # the module exists, but one of its imports does not
                raise
            raise AttributeError(f"module {package!r} has no attribute {name!r}") from missing

    return __getattr__
