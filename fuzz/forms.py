"""The record codec in both forms: compiled, and its sources run as plain Python.

The sources are loaded a second time, as the package `ottla_uncompiled`, with Cython hidden from them: what a user
gets who had no C compiler.
"""

from __future__ import annotations

import importlib
import importlib.util
import os
import sys
import warnings
from dataclasses import dataclass
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec, SourceFileLoader
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # whether it is compiled is asked below
    import ottla.records

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from types import CodeType, ModuleType

UNCOMPILED_IS_ENOUGH: Final = "OTTLA_TEST_UNCOMPILED"
"""Set in the environment to allow running with only the uncompiled codec."""

_NAME: Final = "ottla_uncompiled"
_FOLDER: Final = Path(ottla.records.__file__).parent
_MODULES: Final = (
    "batch",
    "batches",
    "compression",
    "control",
    "decode_columns",
    "encode",
    "encode_columns",
    "compaction",
    "key_offsets",
    "memory",
    "murmur2",
    "payload",
    "reader",
    "uncompiled",
)


@dataclass(frozen=True)
class Form:
    """One form of the codec; its modules are its attributes."""

    name: str
    package: str

    def __getattr__(self, module: str) -> Any:  # noqa: ANN401
        if module not in (*_MODULES, "arrow"):
            raise AttributeError(module)
        return importlib.import_module(f"{self.package}.{module}")


class _Loader(SourceFileLoader):
    def __init__(self, name: str, path: str, patch: Callable[[CodeType], CodeType]) -> None:
        super().__init__(name, path)
        self.patch = patch

    def get_code(self, fullname: str) -> CodeType:
        source = self.get_data(self.get_filename(fullname)).decode()
        return self.patch(compile(source.replace("ottla.records", _NAME), self.path, "exec", dont_inherit=True))


class _Finder(MetaPathFinder):
    def __init__(self, patch: Callable[[CodeType], CodeType]) -> None:
        self.patch = patch

    def find_spec(
        self,
        fullname: str,
        path: Sequence[str] | None,  # noqa: ARG002
        target: ModuleType | None = None,  # noqa: ARG002
    ) -> ModuleSpec | None:
        package, _, module = fullname.partition(".")
        if package != _NAME:
            return None
        file = _FOLDER / f"{module or '__init__'}.py"
        return importlib.util.spec_from_file_location(
            fullname,
            file,
            loader=_Loader(fullname, str(file), self.patch),
            submodule_search_locations=None if module else [str(_FOLDER)],
        )


def load_uncompiled(patch: Callable[[CodeType], CodeType] = lambda code: code) -> Form:
    """The sources as plain Python. `patch` may change the code of a module before it runs, but only of the first."""
    form = Form("uncompiled", _NAME)
    if _NAME in sys.modules:
        return form
    sys.meta_path.insert(0, _Finder(patch))
    cython = sys.modules.get("cython")
    sys.modules["cython"] = None  # type: ignore[assignment]
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            for module in _MODULES:
                importlib.import_module(f"{_NAME}.{module}")
    finally:
        del sys.modules["cython"]
        if cython is not None:
            sys.modules["cython"] = cython
    assert not form.payload.IS_COMPILED
    return form


def load_compiled() -> Form | None:
    """The compiled codec; None where there is none and that was said to be enough."""
    form = Form("compiled", "ottla.records")
    if form.payload.IS_COMPILED:
        return form
    if UNCOMPILED_IS_ENOUGH in os.environ:
        return None
    raise RuntimeError(f"the codec is not compiled; set {UNCOMPILED_IS_ENOUGH}=1 if that is meant to be")


def load_forms(patch: Callable[[CodeType], CodeType] = lambda code: code) -> list[Form]:
    compiled = load_compiled()
    return [load_uncompiled(patch)] if compiled is None else [compiled, load_uncompiled(patch)]
