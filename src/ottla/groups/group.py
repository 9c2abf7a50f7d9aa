"""The interface of all group types."""

from __future__ import annotations

from typing import TypeAlias

from ottla.groups.classic import ClassicGroup
from ottla.groups.consumer.group import ConsumerGroup

Group: TypeAlias = ClassicGroup | ConsumerGroup
