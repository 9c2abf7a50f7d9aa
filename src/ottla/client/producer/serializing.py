"""Serializers that need the topic and the headers of a record, and may have to wait first."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

from ottla.client.errors import ClientError, SerializationFailed
from ottla.client.serializers import RecordSerializer

if TYPE_CHECKING:
    from collections.abc import Callable

    from ottla.client.producer.accumulator import Delivery
    from ottla.client.serializers import Part, Serializer
    from ottla.records.encode import Headers


class Serializing:
    """Serializes keys and values, so that the accumulator gets bytes."""

    def __init__(self, key: Serializer[Any] | None, value: Serializer[Any] | None) -> None:
        self._key = key
        self._value = value
        self._aware_key = _aware(key)
        self._aware_value = _aware(value)

    @property
    def is_needed(self) -> bool:
        return self._aware_key is not None or self._aware_value is not None

    def offering(self, offer: Callable[..., Delivery | None]) -> Callable[..., Delivery | None]:
        def offer_serialized(  # noqa: PLR0913
            topic: str,
            value: object,
            key: object = None,
            partition: int | None = None,
            timestamp_ms: int | None = None,
            headers: Headers = (),
        ) -> Delivery | None:
            if self._unready(topic, key, value):
                return None
            key, value, headers = self.serialized(topic, key, value, headers)
            return offer(topic, value, key, partition, timestamp_ms, headers)

        return offer_serialized

    async def prepare(self, topic: str, key: object, value: object) -> None:
        for part, serializer in self._unready(topic, key, value):
            try:
                await asyncio.to_thread(serializer.prepare, topic, part)
            except Exception as failed:
                raise _failure(part, topic, failed) from failed

    def _unready(self, topic: str, key: object, value: object) -> list[tuple[Part, RecordSerializer]]:
        found: list[tuple[Part, RecordSerializer]] = []
        if key is not None and self._aware_key is not None and not self._aware_key.is_ready(topic, "key"):
            found.append(("key", self._aware_key))
        if value is not None and self._aware_value is not None and not self._aware_value.is_ready(topic, "value"):
            found.append(("value", self._aware_value))
        return found

    def serialized(self, topic: str, key: object, value: object, headers: Headers) -> tuple[Any, Any, Headers]:
        """The key and the value as bytes, and the headers; null stays null."""
        part: Part = "key"
        try:
            if key is not None:
                if self._aware_key is not None:
                    key, headers = self._aware_key.serialize(key, topic, "key", headers)
                elif self._key is not None:
                    key = self._key(key)
            part = "value"
            if value is not None:
                if self._aware_value is not None:
                    value, headers = self._aware_value.serialize(value, topic, "value", headers)
                elif self._value is not None:
                    value = self._value(value)
        except ClientError:
            raise
        except Exception as failed:
            raise _failure(part, topic, failed) from failed
        return key, value, headers


def _aware(serializer: object) -> RecordSerializer | None:
    return serializer if isinstance(serializer, RecordSerializer) else None


def _failure(part: Part, topic: str, failed: Exception) -> ClientError:
    return SerializationFailed(f"could not serialize a {part} for {topic}: {failed}")
