"""Encryption keys and their sources.

The text has a line per key, newest last; new data is encrypted with the newest:

1 0f3c…           a number, and 32 bytes as hexadecimal digits
2 vault:v1:91aa…  or the same 32 bytes, wrapped by a key management service
rewrite-below 2   re-encrypt data of older keys, and unencrypted data
"""

from __future__ import annotations

import os
import re
from pathlib import Path  # noqa: TC003 - a setting is converted to its type
from types import MappingProxyType
from typing import TYPE_CHECKING, Final, Literal

from msgspec import Struct
from msgspec.structs import force_setattr

from ottla.core.errors import ConfigError
from ottla.core.structs import repr_without

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    Unwrap = Callable[[str], bytes]
    Wrap = Callable[[bytes], str]

KEY_BYTES: Final = 32
HIGHEST_KEY_ID: Final = (1 << 32) - 1
_KEY: Final = r"([1-9][0-9]{0,9})\s+([0-9A-Fa-f]{64})"
_WRAPPED: Final = r"([1-9][0-9]{0,9})\s+([a-z][a-z-]*:\S+)"
_REWRITE: Final = r"rewrite-below\s+([1-9][0-9]{0,9})"
_OPEN_TO_OTHERS: Final = 0o077
_COMMAND_TIMEOUT_S: Final = 60


class EncryptionConfig(Struct, frozen=True, kw_only=True):
    key_file: Path | None = None
    """The file with the encryption keys of data at rest. `ottla keys generate FILE` creates one."""
    key_variable: str | None = None
    """The environment variable with the keys, instead of a file; commas may replace line ends."""
    key_command: tuple[str, ...] = ()
    """A program and its arguments that print the keys, instead of a file, e.g. from a key management service."""
    key_wrapping: Literal["none", "vault", "aws-kms", "gcp-kms"] = "none"
    """The service that wraps keys created by `ottla keys`: none, vault, aws-kms or gcp-kms."""
    wrapping_key: str = ""
    """The wrapping key: a transit key of Vault, an id, alias or ARN of AWS KMS, or a name of Google Cloud KMS."""
    vault_address: str = ""
    """Vault's address, such as https://vault.example:8200; default $VAULT_ADDR."""
    vault_mount: str = "transit"
    """The path of Vault's transit secrets engine."""
    vault_token_file: Path | None = None
    """The file with the Vault token, e.g. from an agent; default $VAULT_TOKEN."""
    vault_ca_file: Path | None = None
    """CA certificates for Vault, in PEM, if they are not trusted by the system."""
    key_check_interval_ms: int = 10_000
    """How often to check the key file for new keys and re-encryption."""

    def __post_init__(self) -> None:
        sources = [self.key_file is not None, self.key_variable is not None, bool(self.key_command)]
        if sum(sources) > 1:
            raise ValueError("set only one of key_file, key_variable and key_command")
        if self.key_variable is not None and self.key_variable.startswith("OTTLA_"):
            raise ValueError("key_variable must not start with OTTLA_, the prefix of settings")
        if self.key_check_interval_ms < 1:
            raise ValueError(f"key_check_interval_ms must be at least 1, got {self.key_check_interval_ms}")

    @property
    def is_on(self) -> bool:
        return self.key_file is not None or self.key_variable is not None or bool(self.key_command)


class KeyRing(Struct, frozen=True):
    keys: Mapping[int, bytes]
    rewrite_below: int = 0
    """Re-encrypt data of keys older than this, and unencrypted data."""

    def __post_init__(self) -> None:
        force_setattr(self, "keys", MappingProxyType(dict(self.keys)))

    def __repr__(self) -> str:
        return repr_without(self, "keys")

    @property
    def newest(self) -> int:
        return max(self.keys)

    def with_new_key(self, *, rewrites: bool = False) -> KeyRing:
        """A ring with another key, which replaces all others if it `rewrites`."""
        added = self.newest + 1
        keys = {**self.keys, added: os.urandom(KEY_BYTES)}
        return KeyRing(keys, added if rewrites else self.rewrite_below)


def first_ring() -> KeyRing:
    return KeyRing({1: os.urandom(KEY_BYTES)})


def parse_keys(text: str, source: str, unwrap: Unwrap | None = None) -> KeyRing:
    """Parse keys; a ConfigError names the line number, never its contents."""
    keys: dict[int, bytes] = {}
    rewrite_below = 0
    for number, line in enumerate(map(str.strip, re.split(r"[\n,]", text)), 1):
        if not line or line.startswith("#"):
            continue
        if match := re.fullmatch(_KEY, line) or re.fullmatch(_WRAPPED, line):
            key_id = int(match[1])
            if key_id in keys or key_id > HIGHEST_KEY_ID:
                raise ConfigError(f"{source}, line {number}: key {key_id} is a duplicate, or its number is too high")
            keys[key_id] = _key(match[2], f"{source}, line {number}", unwrap)
        elif match := re.fullmatch(_REWRITE, line):
            rewrite_below = int(match[1])
        else:
            raise ConfigError(f"{source}, line {number}: expected a number and 64 hexadecimal digits")
    if not keys:
        raise ConfigError(f"{source} has no key; create one with `ottla keys generate`")
    if rewrite_below > max(keys):
        raise ConfigError(f"{source}: rewrite-below names key {rewrite_below}, which does not exist")
    return KeyRing(keys, rewrite_below)


def _key(text: str, where: str, unwrap: Unwrap | None) -> bytes:
    if ":" not in text:
        return bytes.fromhex(text)
    if unwrap is None:
        raise ConfigError(f"{where}: wrapped keys are only supported by brokers")
    key = unwrap(text)
    if len(key) != KEY_BYTES:
        raise ConfigError(f"{where}: the unwrapped key has {len(key)} bytes, not {KEY_BYTES}")
    return key


def format_keys(ring: KeyRing, wrap: Wrap = bytes.hex) -> str:
    lines = ["# Encryption keys of Ottla: the data can be read only with them."]
    lines += [f"{key_id} {wrap(key)}" for key_id, key in sorted(ring.keys.items())]
    if ring.rewrite_below:
        lines.append(f"rewrite-below {ring.rewrite_below}")
    return "\n".join(lines) + "\n"


def load_keys(config: EncryptionConfig, unwrap: Unwrap | None = None) -> KeyRing | None:
    """The configured keys, if any."""
    if config.key_file is not None:
        return read_key_file(config.key_file, unwrap)
    if config.key_variable is not None:
        text = os.environ.get(config.key_variable)
        if text is None:
            raise ConfigError(f"encryption.key_variable: variable {config.key_variable} is not set")
        return parse_keys(text, f"the variable {config.key_variable}", unwrap)
    return _keys_from_command(config.key_command, unwrap) if config.key_command else None


def read_key_file(path: Path, unwrap: Unwrap | None = None) -> KeyRing:
    path = path.expanduser()
    try:
        if path.stat().st_mode & _OPEN_TO_OTHERS:
            raise ConfigError(f"{path} is accessible by other users; run `chmod 600 {path}`")
        text = path.read_text("utf-8")
    except OSError as refused:
        raise ConfigError(f"could not read keys from {path}: {refused.strerror}") from None
    except UnicodeDecodeError:
        raise ConfigError(f"{path} is not a key file") from None
    return parse_keys(text, str(path), unwrap)


def write_key_file(path: Path, ring: KeyRing, *, is_new: bool, wrap: Wrap = bytes.hex) -> None:
    """Write a key file that only its owner can read; never replaces an existing file."""
    text = format_keys(ring, wrap)
    beside = path.with_name(path.name + ".tmp")
    try:
        if is_new and path.exists():
            raise ConfigError(f"{path} already exists; it may be the only copy of the keys")
        beside.unlink(missing_ok=True)
        fd = os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        with os.fdopen(fd, "w", encoding="utf-8") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        beside.replace(path)
        folder = os.open(path.parent, os.O_RDONLY | os.O_CLOEXEC)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)
    except OSError as refused:
        raise ConfigError(f"could not write keys to {path}: {refused.strerror}") from None


def _keys_from_command(command: tuple[str, ...], unwrap: Unwrap | None) -> KeyRing:
    import subprocess  # imported lazily

    source = f"encryption.key_command ({command[0]})"
    try:
        done = subprocess.run(command, stdout=subprocess.PIPE, check=True, timeout=_COMMAND_TIMEOUT_S)
        text = done.stdout.decode()
    except subprocess.CalledProcessError as failed:
        raise ConfigError(f"{source} exited with {failed.returncode}") from None
    except subprocess.TimeoutExpired:
        raise ConfigError(f"{source} did not finish within {_COMMAND_TIMEOUT_S} seconds") from None
    except OSError as refused:
        raise ConfigError(f"{source} could not be run: {refused.strerror}") from None
    except UnicodeDecodeError:
        raise ConfigError(f"{source} did not print keys") from None
    return parse_keys(text, f"the output of {command[0]}", unwrap)
