"""What every kind of group can be asked."""

from __future__ import annotations

from typing import TypeAlias

from ottla.groups.classic import ClassicGroup
from ottla.groups.consumer.group import ConsumerGroup

Group: TypeAlias = ClassicGroup | ConsumerGroup
