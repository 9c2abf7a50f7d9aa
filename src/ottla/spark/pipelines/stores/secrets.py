"""Secrets of a pipeline, which must not be shown. Pure rules."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final
from urllib.parse import unquote

from ottla.spark.pipelines.stores.settings import StorageSettings

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from ottla.spark.pipelines.sinks.sink import Sink

_WORDS: Final = ("password", "secret", "token", "credential", "key")
_LEAST: Final = 4
"""Shorter texts are part of other words."""


def secrets_of(sinks: Iterable[Sink]) -> tuple[str, ...]:
    """Keys of stores and catalogs, and passwords in their addresses."""
    return tuple({each for sink in sinks for each in sink.secrets() if len(each) >= _LEAST})


def secrets_in(values: Mapping[str, object]) -> set[str]:
    """The secrets among named values: by name, in addresses, in tables of settings and in `[storage]`."""
    found: set[str] = set()
    for name, value in values.items():
        if isinstance(value, StorageSettings):
            found |= set(value.secrets)
        elif isinstance(value, dict):
            found |= secrets_in(value)
        elif isinstance(value, str):
            found |= _passwords(value)
            if name != "key" and any(word in name.lower() for word in _WORDS):
                found.add(value)
    return found - {""}


def _passwords(address: str) -> set[str]:
    """SCHEME://USER:PASSWORD@HOST, as it is written and as it is meant."""
    login, at, _ = address.partition("://")[2].rpartition("@")
    password = login.partition(":")[2] if at else ""
    return {password, unquote(password)} if password else set()


def redacted(text: str, secrets: Iterable[str]) -> str:
    for secret in sorted(secrets, key=len, reverse=True):
        text = text.replace(secret, "***")
    return text
