"""What must not be shown of a pipeline. Rules only."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final
from urllib.parse import unquote

if TYPE_CHECKING:
    from collections.abc import Iterable

    from ottla.spark.pipelines.definition import Sink

_WORDS: Final = ("password", "secret", "token", "credential", "key")
_LEAST: Final = 4
"""Shorter texts are part of other words."""


def secrets_of(sinks: Iterable[Sink]) -> tuple[str, ...]:
    """Keys of stores and catalogs, and passwords in their addresses."""
    found: set[str] = set()
    for sink in sinks:
        found |= set(sink.storage.secrets)
        found |= {value for name, value in sink.catalog.items() if any(word in name for word in _WORDS)}
        for address in (sink.url, *sink.catalog.values()):
            found |= _passwords(address)
    return tuple(each for each in found if len(each) >= _LEAST)


def _passwords(address: str) -> set[str]:
    """SCHEME://USER:PASSWORD@HOST, as it is written and as it is meant."""
    login, at, _ = address.partition("://")[2].rpartition("@")
    password = login.partition(":")[2] if at else ""
    return {password, unquote(password)} if password else set()


def redacted(text: str, secrets: Iterable[str]) -> str:
    for secret in sorted(secrets, key=len, reverse=True):
        text = text.replace(secret, "***")
    return text
