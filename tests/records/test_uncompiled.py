"""The replacement of the cython module when the codec runs as plain Python."""

from __future__ import annotations

import subprocess
import sys

import pytest
from fuzz.forms import load_compiled, load_uncompiled

from ottla.records import uncompiled

EVERYTHING = "batch compression control decode_columns encode encode_columns memory payload reader arrow"


def test_decorators_and_types_have_no_effect() -> None:
    def function() -> None:
        pass

    assert uncompiled.cfunc(function) is uncompiled.inline(function) is uncompiled.exceptval(-1)(function) is function
    assert uncompiled.freelist(8)(function) is uncompiled.nonecheck(True)(function) is function  # noqa: FBT003
    assert uncompiled.cast("anything", 5) == uncompiled.declare("anything", 5) == 5
    assert uncompiled.longlong == "longlong"
    assert uncompiled.cython is uncompiled
    assert uncompiled.compiled is False


@pytest.mark.parametrize(("check", "bits"), [(uncompiled.int32, 31), (uncompiled.int64, 63)])
def test_numbers_are_as_wide_as_in_c(check: object, bits: int) -> None:
    assert callable(check)
    for number in (0, -1, (1 << bits) - 1, -(1 << bits)):
        assert check(number) == number
    for number in (1 << bits, -(1 << bits) - 1):
        with pytest.raises(OverflowError, match=f"{number} exceeds {bits + 1} bits"):
            check(number)
    for wrong in (1.5, "1", None):
        with pytest.raises(TypeError):
            check(wrong)


def test_a_buffer_is_flat_or_refused() -> None:
    assert uncompiled.flat(memoryview(b"abcd").cast("I")) == b"abcd"
    assert uncompiled.flat(b"") == b""
    with pytest.raises(BufferError):
        uncompiled.flat(memoryview(b"abcd")[::2])
    with pytest.raises(BufferError):
        uncompiled.flat(b"abcd", is_writable=True)


def test_the_uncompiled_form_is_plain_python() -> None:
    form = load_uncompiled()

    assert not form.payload.IS_COMPILED
    assert form.payload.__file__.endswith("payload.py")
    assert form.payload.cython is form.uncompiled


@pytest.mark.skipif(load_compiled() is None, reason="there is no compiled form, and that was said to be enough")
def test_the_compiled_modules_need_neither_cython_nor_a_warning() -> None:
    program = (
        f"import sys; sys.modules['cython'] = None\nfor m in '{EVERYTHING}'.split(): __import__('ottla.records.' + m)"
    )

    ran = subprocess.run([sys.executable, "-W", "error", "-c", program], check=False, capture_output=True, text=True)

    assert ran.stderr == ""
    assert ran.returncode == 0
