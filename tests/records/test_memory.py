"""Foreign buffers: held while in use, and refused if unsuitable."""

from __future__ import annotations

import array
from typing import TYPE_CHECKING

import pytest

from .making import is_released

if TYPE_CHECKING:
    from fuzz.forms import Form


def test_memory_is_held_until_released(form: Form) -> None:
    source = bytearray(8)
    memory = form.memory.Memory(source, is_writable=True)

    assert not is_released(source)
    del memory
    assert is_released(source)


@pytest.mark.parametrize("source", [bytes(8), memoryview(bytearray(16))[::2], memoryview(bytes(16))[::2]])
def test_read_only_memory_is_refused(form: Form, source: bytes | memoryview) -> None:
    with pytest.raises(BufferError):
        form.memory.Memory(source, is_writable=True)


def test_non_contiguous_memory_is_refused(form: Form) -> None:
    with pytest.raises(BufferError):
        form.memory.Memory(memoryview(bytes(16))[::2], is_writable=False)


@pytest.mark.parametrize("source", [None, "text", 5, [1, 2]])
def test_an_object_without_a_buffer_is_refused(form: Form, source: object) -> None:
    with pytest.raises(TypeError):
        form.memory.Memory(source, is_writable=False)


def test_any_format_is_bytes(form: Form) -> None:
    for source in (array.array("q", [1, 2]), array.array("d"), memoryview(bytes(12)).cast("B", [3, 4]), b""):
        form.memory.Memory(source, is_writable=False)


def test_memory_is_held_once(form: Form) -> None:
    source = bytearray(8)
    memory = form.memory.Memory(source, is_writable=True)

    if form.name == "compiled":
        with pytest.raises(RuntimeError, match="already acquired"):
            memory.__init__(bytearray(8), is_writable=True)
    del memory
    assert is_released(source)
