from __future__ import annotations

import stat
import sys
from typing import TYPE_CHECKING

import pytest

from ottla.core.errors import ConfigError
from ottla.core.keys import (
    EncryptionConfig,
    KeyRing,
    first_ring,
    format_keys,
    load_keys,
    parse_keys,
    read_key_file,
    write_key_file,
)

if TYPE_CHECKING:
    from pathlib import Path

ONE, TWO = "11" * 32, "22" * 32


def test_written_keys_are_read_back() -> None:
    ring = first_ring().with_new_key().with_new_key(rewrites=True)

    assert parse_keys(format_keys(ring), "here") == ring
    assert (ring.newest, ring.rewrite_below) == (3, 3)


def test_commas_may_replace_newlines() -> None:
    ring = parse_keys(f"1 {ONE}, 2 {TWO}", "the variable K")

    assert ring.keys == {1: bytes.fromhex(ONE), 2: bytes.fromhex(TWO)}


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("", "no key"),
        ("# nothing\n", "no key"),
        (f"1 {ONE}\n1 {TWO}", "line 2: key 1 is a duplicate"),
        (f"4294967296 {ONE}", "too high"),
        (f"0 {ONE}", "line 1"),
        (f"1 {ONE[:-2]}", "line 1"),
        (f"1 {ONE}\nrewrite-below 2", "key 2"),
    ],
)
def test_invalid_key_rings_are_refused_without_quoting_them(text: str, told: str) -> None:
    with pytest.raises(ConfigError, match=told) as refused:
        parse_keys(text, "keys")

    assert ONE[:8] not in str(refused.value)


def test_a_ring_does_not_show_its_keys() -> None:
    ring = KeyRing({1: b"secret" * 5 + b"ab"})

    assert "secret" not in repr(ring)
    assert ONE not in repr(parse_keys(f"1 {ONE}", "x"))


def test_a_key_file_is_readable_by_its_owner_only(tmp_path: Path) -> None:
    path = tmp_path / "keys"
    write_key_file(path, first_ring(), is_new=True)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600

    path.chmod(0o640)

    with pytest.raises(ConfigError, match="chmod 600"):
        read_key_file(path)


def test_a_new_key_file_does_not_overwrite_a_file(tmp_path: Path) -> None:
    path = tmp_path / "keys"
    write_key_file(path, first_ring(), is_new=True)
    before = path.read_bytes()

    with pytest.raises(ConfigError, match="already exists"):
        write_key_file(path, first_ring(), is_new=True)

    assert path.read_bytes() == before
    assert sorted(tmp_path.iterdir()) == [path]


def test_keys_come_from_a_file_the_environment_or_a_command(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "keys"
    path.write_text(f"1 {ONE}\n")
    path.chmod(0o600)
    monkeypatch.setenv("BROKER_KEYS", f"1 {ONE}")
    command = (sys.executable, "-c", f"print('1 {ONE}')")

    rings = [
        load_keys(EncryptionConfig(key_file=path)),
        load_keys(EncryptionConfig(key_variable="BROKER_KEYS")),
        load_keys(EncryptionConfig(key_command=command)),
    ]

    assert rings == [KeyRing({1: bytes.fromhex(ONE)})] * 3
    assert load_keys(EncryptionConfig()) is None


@pytest.mark.parametrize(
    ("config", "told"),
    [
        (EncryptionConfig(key_variable="NOT_SET_ANYWHERE"), "variable .* is not set"),
        (EncryptionConfig(key_command=("/not/there",)), "could not be run"),
        (EncryptionConfig(key_command=(sys.executable, "-c", "raise SystemExit(3)")), "exited with 3"),
        (EncryptionConfig(key_command=(sys.executable, "-c", "print('no key')")), "line 1"),
    ],
)
def test_a_source_without_keys_says_what_is_wrong(config: EncryptionConfig, told: str) -> None:
    with pytest.raises(ConfigError, match=told):
        load_keys(config)


def test_a_missing_key_file_says_so(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="No such file"):
        read_key_file(tmp_path / "keys")


def test_keys_have_one_source(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="one of key_file, key_variable and key_command"):
        EncryptionConfig(key_file=tmp_path, key_variable="K")
    with pytest.raises(ValueError, match="OTTLA_"):
        EncryptionConfig(key_variable="OTTLA_KEYS")
