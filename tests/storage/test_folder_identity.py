from __future__ import annotations

import shutil
from typing import TYPE_CHECKING

from ottla.core.clock import SystemClock
from ottla.storage.folder import folder_identity
from ottla.storage.folder.data_dir import DataDir
from ottla.storage.folder.folder_identity import GENERATION, MACHINE, FolderIdentity
from ottla.storage.folder.meta_properties import META_PROPERTIES

if TYPE_CHECKING:
    from pathlib import Path

    import pytest


def _identity(path: Path) -> FolderIdentity:
    with DataDir(path, SystemClock()) as folder:
        return FolderIdentity(path, folder.meta)


def test_a_folder_is_new_only_in_the_process_that_created_it(tmp_path: Path) -> None:
    first, second = _identity(tmp_path), _identity(tmp_path)

    assert (first.is_new, second.is_new) == (True, False)
    assert first.id == second.id


def test_its_generation_is_remembered(tmp_path: Path) -> None:
    assert _identity(tmp_path).generation == 0
    assert _identity(tmp_path).raise_generation(7)

    assert _identity(tmp_path).generation == 7


def test_a_generation_that_cannot_be_read_is_the_oldest(tmp_path: Path) -> None:
    _identity(tmp_path).raise_generation(7)
    (tmp_path / GENERATION).write_bytes(b"\xff\n")

    assert _identity(tmp_path).generation == 0


def test_a_generation_that_cannot_be_written_stays_what_it_was(tmp_path: Path) -> None:
    identity = _identity(tmp_path)
    (tmp_path / f"{GENERATION}.tmp").mkdir()

    assert not identity.raise_generation(1)
    assert identity.generation == 0


def test_an_older_copy_gets_another_id(tmp_path: Path) -> None:
    identity = _identity(tmp_path)
    old = identity.id
    identity.renew()

    assert identity.is_new
    assert _identity(tmp_path).id == identity.id != old


def test_a_folder_without_an_id_gets_one(tmp_path: Path) -> None:
    _identity(tmp_path)
    lines = (tmp_path / META_PROPERTIES).read_text().splitlines(keepends=True)
    (tmp_path / META_PROPERTIES).write_text("".join(line for line in lines if not line.startswith("directory.id")))

    identity = _identity(tmp_path)
    assert identity.id
    assert not identity.is_new
    assert _identity(tmp_path).id == identity.id


def test_a_reboot_of_the_machine_is_detected(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert not _identity(tmp_path).is_on_same_machine
    _identity(tmp_path).note_machine()
    assert _identity(tmp_path).is_on_same_machine

    monkeypatch.setattr(folder_identity, "boot_id", lambda: "another")
    assert not _identity(tmp_path).is_on_same_machine
    assert not _identity(tmp_path).is_copy


def test_without_a_boot_id_a_reboot_is_assumed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(folder_identity, "boot_id", lambda: "")
    _identity(tmp_path).note_machine()

    assert not _identity(tmp_path).is_on_same_machine


def test_a_copy_of_a_folder_is_recognised_however_young_it_is(tmp_path: Path) -> None:
    _identity(tmp_path / "used").note_machine()
    shutil.copytree(tmp_path / "used", tmp_path / "copy")

    copy, used = _identity(tmp_path / "copy"), _identity(tmp_path / "used")
    assert (copy.is_on_same_machine, copy.is_copy) == (False, True)
    assert (used.is_on_same_machine, used.is_copy) == (True, False)


def test_a_boot_id_that_cannot_be_saved_does_not_fail_the_start(tmp_path: Path) -> None:
    identity = _identity(tmp_path)
    (tmp_path / f"{MACHINE}.tmp").mkdir()

    identity.note_machine()
    assert not _identity(tmp_path).is_on_same_machine
