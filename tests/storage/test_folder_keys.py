from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from ottla.core.clock import ManualClock
from ottla.core.errors import DataDirError, StorageError
from ottla.core.ids import TopicPartition
from ottla.core.keys import KeyRing
from ottla.core.sealing import Sealer
from ottla.storage.config import LogConfig
from ottla.storage.folder.data_dir import DataDir
from ottla.storage.folder.folder_keys import FILE

from .encrypting import ONE_KEY, OTHER_KEY, TOPIC, TWO_KEYS
from .making import batch

if TYPE_CHECKING:
    from pathlib import Path

AT = TopicPartition("orders", 0)


def write(folder: Path, ring: KeyRing | None, value: bytes = b"v") -> None:
    with open_dir(folder, ring) as data_dir:
        data_dir.open_partition(AT, LogConfig(), TOPIC).append(batch(value))


def open_dir(folder: Path, ring: KeyRing | None) -> DataDir:
    return DataDir(folder, ManualClock(), sealer=None if ring is None else Sealer(ring))


def contents(folder: Path) -> dict[str, tuple[bytes, int]]:
    return {
        str(path): (path.read_bytes(), path.stat().st_mtime_ns) for path in sorted(folder.rglob("*")) if path.is_file()
    }


@pytest.mark.parametrize(
    ("ring", "told"),
    [
        (None, "no keys are configured"),
        (OTHER_KEY, "a different key 1"),
        (KeyRing({2: b"2" * 32}), "key 1, which is missing"),
    ],
)
def test_a_wrong_or_missing_key_refuses_and_changes_nothing(tmp_path: Path, ring: KeyRing | None, told: str) -> None:
    write(tmp_path, ONE_KEY)
    before = contents(tmp_path)

    with pytest.raises(DataDirError, match=told):
        open_dir(tmp_path, ring)

    assert contents(tmp_path) == before


def test_a_new_key_is_recorded_before_it_is_used(tmp_path: Path) -> None:
    write(tmp_path, ONE_KEY)

    open_dir(tmp_path, TWO_KEYS).close()

    with pytest.raises(DataDirError, match="key 2"):
        open_dir(tmp_path, ONE_KEY)


def test_keys_are_not_stored_in_the_folder(tmp_path: Path) -> None:
    write(tmp_path, TWO_KEYS)

    for path in tmp_path.rglob("*"):
        if path.is_file():
            assert b"2" * 32 not in path.read_bytes()
            assert (b"2" * 32).hex().encode() not in path.read_bytes()


@pytest.mark.parametrize("field", ["plain", "keys", "version", "signature"])
def test_a_file_that_was_changed_is_refused(tmp_path: Path, field: str) -> None:
    write(tmp_path, TWO_KEYS)
    path = tmp_path / FILE
    content = json.loads(path.read_bytes())
    content[field] = {"plain": True, "keys": {}, "version": 2, "signature": "00"}[field]
    path.write_text(json.dumps(content))

    with pytest.raises(DataDirError, match=FILE):
        open_dir(tmp_path, TWO_KEYS)


@pytest.mark.parametrize("text", ["", "[]", "null", '{"keys": 1}'])
def test_a_file_that_is_damaged_is_refused(tmp_path: Path, text: str) -> None:
    write(tmp_path, ONE_KEY)
    (tmp_path / FILE).write_text(text)

    with pytest.raises(DataDirError, match="cannot be read"):
        open_dir(tmp_path, ONE_KEY)


def test_a_missing_file_is_not_re_created_beside_encrypted_segments(tmp_path: Path) -> None:
    write(tmp_path, ONE_KEY)
    (tmp_path / FILE).unlink()

    with pytest.raises(DataDirError, match="is encrypted"):
        open_dir(tmp_path, ONE_KEY)
    with open_dir(tmp_path, None) as data_dir, pytest.raises(StorageError, match="no keys are configured"):
        data_dir.open_partition(AT, LogConfig(), TOPIC)


def test_an_always_encrypted_folder_refuses_plain_segments(tmp_path: Path) -> None:
    with open_dir(tmp_path / "new", ONE_KEY) as data_dir:
        assert data_dir.keys is not None
        assert not data_dir.keys.allows_plain

    write(tmp_path / "old", None)
    with open_dir(tmp_path / "old", ONE_KEY) as data_dir:
        assert data_dir.keys is not None
        assert data_dir.keys.allows_plain
        data_dir.settle_keys(1)
        assert not data_dir.keys.allows_plain


def test_a_retired_key_is_no_longer_needed(tmp_path: Path) -> None:
    with open_dir(tmp_path, ONE_KEY) as data_dir:
        data_dir.use_keys(TWO_KEYS)
        assert data_dir.keys is not None
        assert not data_dir.keys.is_settled(2)
        data_dir.settle_keys(2)
        assert data_dir.keys.is_settled(2)

    open_dir(tmp_path, KeyRing({2: b"2" * 32})).close()


def test_mismatched_keys_are_not_loaded(tmp_path: Path) -> None:
    with open_dir(tmp_path, ONE_KEY) as data_dir:
        with pytest.raises(DataDirError):
            data_dir.use_keys(OTHER_KEY)

        assert data_dir.sealer is not None
        assert data_dir.sealer.ring is ONE_KEY


def test_a_partition_of_an_unknown_topic_is_not_encrypted(tmp_path: Path) -> None:
    with open_dir(tmp_path, ONE_KEY) as data_dir, pytest.raises(DataDirError, match="topic id"):
        data_dir.open_partition(AT, LogConfig())


def test_without_encryption_nothing_is_recorded(tmp_path: Path) -> None:
    write(tmp_path, None)

    assert not (tmp_path / FILE).exists()
