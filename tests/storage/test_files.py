from __future__ import annotations

import errno
import os
from typing import TYPE_CHECKING

import pytest

from ottla.core.errors import StorageError
from ottla.storage.files import (
    LOG,
    TIME_INDEX,
    discard_beside,
    file_name,
    offset_in_name,
    replace_file,
    storage_errors,
    sync_folder,
    write_all,
    write_beside,
)

from .making import open_in

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def synced(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    names: list[str] = []
    monkeypatch.setattr(os, "fsync", lambda fd: names.append(os.path.basename(os.readlink(f"/proc/self/fd/{fd}"))))
    return names


def test_a_file_is_named_after_its_first_offset() -> None:
    assert file_name(240, LOG) == "00000000000000000240.log"
    assert offset_in_name("00000000000000000240.log", LOG) == 240
    assert offset_in_name(file_name((1 << 63) - 1, TIME_INDEX), TIME_INDEX) == (1 << 63) - 1


@pytest.mark.parametrize(
    "name",
    [
        ".log",
        "240.log",
        "000000000000000000240.log",
        "-0000000000000000240.log",
        "0000000000000000024x.log",
        "\N{ARABIC-INDIC DIGIT ZERO}" * 20 + ".log",
        "00000000000000000240.index",
        "00000000000000000240.log.deleted",
    ],
)
def test_other_names_are_not_log_files(name: str) -> None:
    assert offset_in_name(name, LOG) is None


def test_what_the_system_refuses_is_an_error_of_storage_in_its_own_words() -> None:
    with pytest.raises(StorageError, match="closing: No space left on device"), storage_errors("closing"):
        raise OSError(errno.ENOSPC, "No space left on device")


def test_every_byte_is_written_however_few_the_system_takes_at_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pwrite = os.pwrite
    monkeypatch.setattr(os, "pwrite", lambda fd, data, at: pwrite(fd, bytes(data[:3]), at))
    fd = os.open(tmp_path / "f", os.O_RDWR | os.O_CREAT)
    try:
        write_all(fd, b"0123456789", 2)
    finally:
        os.close(fd)

    assert (tmp_path / "f").read_bytes() == b"\0\x000123456789"


def test_a_file_is_replaced_durably_and_its_folder_last(tmp_path: Path, synced: list[str]) -> None:
    (tmp_path / "f").write_bytes(b"a long old one")
    replace_file(tmp_path / "f", b"new")

    assert (tmp_path / "f").read_bytes() == b"new"
    assert synced == ["f.tmp", tmp_path.name]
    assert [path.name for path in tmp_path.iterdir()] == ["f"]
    assert open_in(tmp_path) == []


def test_what_can_be_rebuilt_is_replaced_without_waiting_for_the_disk(tmp_path: Path, synced: list[str]) -> None:
    replace_file(tmp_path / "f", b"new", is_durable=False)

    assert (tmp_path / "f").read_bytes() == b"new"
    assert synced == []


@pytest.mark.parametrize("call", ["pwrite", "fsync"])
def test_a_replacement_that_fails_leaves_the_old_file_and_nothing_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, call: str
) -> None:
    (tmp_path / "f").write_bytes(b"old")

    def fail(*_: object) -> int:
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as full_disk:
        full_disk.setattr(os, call, fail)
        with pytest.raises(OSError, match="No space left"):
            replace_file(tmp_path / "f", b"new")

    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == {"f": b"old"}
    assert open_in(tmp_path) == []


def test_a_temporary_file_has_no_effect_until_it_replaces_the_original(tmp_path: Path) -> None:
    (tmp_path / "f").write_bytes(b"old")
    os.close(write_beside(tmp_path / "f", b"a longer new one"))
    os.close(write_beside(tmp_path / "f", b"new"))

    assert (tmp_path / "f").read_bytes() == b"old"
    assert (tmp_path / "f.tmp").read_bytes() == b"new"
    discard_beside(tmp_path / "f")
    discard_beside(tmp_path / "f")
    assert [path.name for path in tmp_path.iterdir()] == ["f"]


def test_a_folder_is_synced_and_its_descriptor_closed(tmp_path: Path, synced: list[str]) -> None:
    sync_folder(tmp_path)

    assert synced == [tmp_path.name]
    assert str(tmp_path) not in open_in(tmp_path.parent)
