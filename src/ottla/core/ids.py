"""Identifiers."""

from __future__ import annotations

import base64
import re
import uuid
from typing import Final, NamedTuple

from msgspec import Struct

MAX_TOPIC_NAME_LENGTH: Final = 249
_LEGAL_TOPIC_NAME: Final = re.compile(r"[A-Za-z0-9._-]+")
_TOPIC_ID_TEXT: Final = re.compile(r"[A-Za-z0-9_-]{22}")


class Address(NamedTuple):
    host: str
    port: int

    def __str__(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


class TopicPartition(Struct, frozen=True, order=True):
    topic: str
    partition: int

    def __str__(self) -> str:
        return f"{self.topic}-{self.partition}"


class TopicId(Struct, frozen=True):
    """A topic's identity for its lifetime; a topic re-created under the same name has another id."""

    value: uuid.UUID

    @classmethod
    def random(cls) -> TopicId:
        # Kafka's tools parse a leading dash as an option, so neither Kafka nor Ottla creates such an id.
        while (candidate := cls(uuid.uuid4())).text.startswith("-"):
            pass
        return candidate

    @classmethod
    def parse(cls, text: str) -> TopicId:
        """Parse the 22 characters of URL-safe base64 that Kafka writes."""
        # Checked here because base64's validation accepts + and / of the other alphabet.
        if not _TOPIC_ID_TEXT.fullmatch(text):
            raise ValueError(f"not a topic id: {text!r}")
        return cls(uuid.UUID(bytes=base64.urlsafe_b64decode(text + "==")))

    @property
    def text(self) -> str:
        return base64.urlsafe_b64encode(self.value.bytes).decode("ascii").rstrip("=")

    @property
    def raw(self) -> bytes:
        return self.value.bytes

    def __str__(self) -> str:
        return self.text


def problem_with_topic_name(name: str) -> str | None:
    """Describes what is invalid about this topic name; None if it is valid."""
    if not name:
        return "a topic name cannot be empty"
    if name in {".", ".."}:
        return f"invalid topic name {name!r}"
    if len(name) > MAX_TOPIC_NAME_LENGTH:
        return f"a topic name has at most {MAX_TOPIC_NAME_LENGTH} characters, this one has {len(name)}"
    if not _LEGAL_TOPIC_NAME.fullmatch(name):
        return f"topic name {name!r} may contain only ASCII letters, digits, '.', '_' and '-'"
    return None
