"""Structs: values whose classes are cheaper to define than dataclasses, whose methods are compiled at each start."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from msgspec import Struct


def repr_without(value: Struct, *hidden: str) -> str:
    """The usual representation without these fields, which are secret."""
    names = (name for name in value.__struct_fields__ if name not in hidden)
    return f"{type(value).__name__}({', '.join(f'{name}={getattr(value, name)!r}' for name in names)})"
