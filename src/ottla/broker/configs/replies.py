"""Described configs as response messages."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ottla.wire.messages.create_topics import CreatableTopicConfigs
from ottla.wire.messages.describe_configs import DescribeConfigsResourceResult, DescribeConfigsSynonym

if TYPE_CHECKING:
    from collections.abc import Iterable

    from ottla.broker.configs.describe import ConfigEntry


def for_describe(
    entries: Iterable[ConfigEntry], *, synonyms: bool, documentation: bool
) -> tuple[DescribeConfigsResourceResult, ...]:
    """Include only the details that the client requested."""
    return tuple(
        DescribeConfigsResourceResult(
            name=entry.name,
            value=entry.value,
            read_only=entry.is_read_only,
            config_source=entry.source,
            is_sensitive=entry.is_sensitive,
            synonyms=_synonyms(entry) if synonyms else (),
            config_type=entry.type,
            documentation=entry.documentation if documentation else None,
        )
        for entry in entries
    )


def for_create(entries: Iterable[ConfigEntry]) -> tuple[CreatableTopicConfigs, ...]:
    return tuple(
        CreatableTopicConfigs(
            name=entry.name,
            value=entry.value,
            read_only=entry.is_read_only,
            config_source=entry.source,
            is_sensitive=entry.is_sensitive,
        )
        for entry in entries
    )


def _synonyms(entry: ConfigEntry) -> tuple[DescribeConfigsSynonym, ...]:
    return tuple(DescribeConfigsSynonym(name=one.name, value=one.value, source=one.source) for one in entry.synonyms)
