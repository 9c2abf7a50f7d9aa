"""Subject name strategies of serializers: pure rules."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from ottla.core.errors import ConfigError
from ottla.schema.errors import SchemaError

if TYPE_CHECKING:
    from collections.abc import Callable

    from ottla.schema.frames import Part

Strategy = Literal["topic", "record", "topic-record"]
"""Examples: orders-value; shop.Order; orders-shop.Order."""


def subject_of(
    names: Strategy | Callable[[str, Part, str | None], str], topic: str | None, part: Part, record: str | None
) -> str:
    """The subject of a topic's keys or values, whose schema has this record name."""
    if callable(names):
        return names(topic or "", part, record)
    if names not in ("topic", "record", "topic-record"):
        raise ConfigError(f"subjects must be topic, record, topic-record or a function, got {names!r}")
    if names != "record" and topic is None:
        raise SchemaError("the subject depends on the topic; pass topic=…")
    if names == "topic":
        return f"{topic}-{part}"
    if record is None:
        raise SchemaError(f"the schema has no name, which subjects={names!r} needs")
    return record if names == "record" else f"{topic}-{record}"
