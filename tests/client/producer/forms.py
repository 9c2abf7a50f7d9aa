"""The accumulator in both forms: compiled, and its source run as plain Python."""

from __future__ import annotations

import sys
from pathlib import Path
from types import ModuleType

from fuzz.forms import load_forms

from ottla.client.producer import accumulator as compiled

NAME = "ottla.client.producer.accumulator"


def _load_uncompiled() -> ModuleType:
    source = Path(compiled.__file__).with_name("accumulator.py")
    module = ModuleType(NAME)
    code = compile(source.read_text().replace("ottla.records", "ottla_uncompiled"), str(source), "exec")
    cython = sys.modules.get("cython")
    sys.modules["cython"] = None  # type: ignore[assignment]
    try:
        exec(code, module.__dict__)  # noqa: S102
    finally:
        del sys.modules["cython"]
        if cython is not None:
            sys.modules["cython"] = cython
    return module


def load() -> dict[str, ModuleType]:
    uncompiled = [form for form in load_forms() if form.name == "uncompiled"]
    assert uncompiled, "its records exist in both forms"
    forms = {"uncompiled": _load_uncompiled()}
    return {"compiled": compiled, **forms} if compiled.IS_COMPILED else forms


FORMS = load()
