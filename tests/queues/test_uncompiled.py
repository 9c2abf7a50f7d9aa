"""The code of each push without a C compiler: its source run as plain Python."""

from __future__ import annotations

import sys
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ottla.queue import Queue, encode, part_writer
from ottla.queue import queue as queue_module
from ottla.queue.folder import MAX_NAME_BYTES

from .test_golden_bytes import MESSAGES, RECORDS

if TYPE_CHECKING:
    from collections.abc import Iterator

U32, U64 = (1 << 32) - 1, (1 << 64) - 1


def load_uncompiled(module: ModuleType) -> Any:
    name = module.__name__
    source = Path(str(module.__file__)).with_name(f"{name.rpartition('.')[2]}.py")
    plain = ModuleType(name)
    with pytest.MonkeyPatch.context() as patched:
        patched.setitem(sys.modules, "cython", None)
        exec(compile(source.read_text(), str(source), "exec"), plain.__dict__)  # noqa: S102
    assert not plain.IS_COMPILED
    return plain


plain = load_uncompiled(encode)


@pytest.fixture
def plain_writer(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patched:
        patched.setitem(sys.modules, "ottla.queue.encode", plain)
        monkeypatch.setattr(queue_module, "PartWriter", load_uncompiled(part_writer).PartWriter)
        yield


@given(st.integers(0, U64), st.integers(0, U32), st.integers(0, 255), st.binary(max_size=300))
def test_a_message_is_the_same_bytes_in_both_forms(offset: int, number: int, kind: int, body: bytes) -> None:
    assert encode.encode(offset, number, kind, body) == plain.encode(offset, number, kind, body)


@given(st.binary(max_size=MAX_NAME_BYTES), st.integers(0, U64), st.integers(0, U64))
def test_the_line_of_a_push_is_the_same_in_both_forms(name: bytes, edge: int, count: int) -> None:
    assert encode.push_line(name, edge, count) == plain.push_line(name, edge, count)


@pytest.mark.skipif(not encode.IS_COMPILED, reason="there is no compiled form")
def test_a_name_that_is_too_long_for_its_buffer_is_refused() -> None:
    with pytest.raises(ValueError, match="limited to 100 bytes, got 101"):
        encode.push_line(b"x" * (MAX_NAME_BYTES + 1), 0, 0)


@pytest.mark.usefixtures("plain_writer")
def test_the_plain_form_writes_the_crates_bytes(tmp_path: Path) -> None:
    for name, fsync in (("events", "never"), ("other", "push")):
        with Queue(tmp_path, name, fsync=fsync) as queue:  # type: ignore[arg-type]
            assert [queue.push(message) for message in MESSAGES] == [38, 67, 92, 129, 454]
        assert (tmp_path / f"{name}-0" / f"{name}_queue").read_bytes() == RECORDS
    assert (tmp_path / "events-0" / "events_info_push").read_bytes() == b"events;454;5;2934033464\n"


@pytest.mark.usefixtures("plain_writer")
def test_the_plain_form_begins_parts_and_syncs_batches(tmp_path: Path) -> None:
    with Queue(tmp_path, "q", fsync="batch", batch_messages=3, part_bytes=300) as queue:
        for number in range(50):
            queue.push(f"{number:03}")
        queue.push_many(f"{number:03}" for number in range(50, 100))
        assert queue.part > 5
        with queue.consumer("c", "earliest") as consumer:
            assert [int(message.body) for message in consumer] == list(range(100))
