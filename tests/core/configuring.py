"""Two sections with settings of every type, and helpers to set them."""

from __future__ import annotations

from enum import Enum
from pathlib import Path
from typing import Literal

import pytest
from msgspec import Struct

from ottla.core.config import Flag, Settings, load
from ottla.core.errors import ConfigError


class Colour(Enum):
    RED = "red"
    BLUE = "blue"


class DiskConfig(Struct, frozen=True, kw_only=True):
    segment_bytes: int = 1 << 30
    """Roll to a new file
    once this is reached."""

    index_bytes: int = 10 << 20
    retention_ms: int | None = 604_800_000
    """Keep this long."""
    flush: Literal["os", "interval", "ack"] = "interval"
    folder: Path = Path("data")
    preallocate: bool = False

    def __post_init__(self) -> None:
        if self.segment_bytes < 1024:
            raise ValueError(f"segment_bytes must be at least 1024, got {self.segment_bytes}")
        if self.index_bytes < 8:
            raise ValueError(f"index_bytes must be at least 8, got {self.index_bytes}")
        if self.index_bytes > self.segment_bytes:
            raise ValueError("index_bytes must not be larger than segment_bytes")


class DoorConfig(Struct, frozen=True, kw_only=True):
    port: int = 9092
    names: tuple[str, ...] = ()
    colour: Colour = Colour.RED
    ratio: float = 0.5
    admin_password: str | None = None
    token_lifetime_ms: int = 1000

    def __post_init__(self) -> None:
        if self.admin_password == "1234":
            raise ValueError(f"admin_password {self.admin_password} is too easy")


SECTIONS: dict[str, type[Struct]] = {"log": DiskConfig, "server": DoorConfig}


def write(folder: Path, text: str | bytes) -> Path:
    file = folder / "ottla.toml"
    file.write_bytes(text.encode() if isinstance(text, str) else text)
    return file


def refusal(
    *,
    file: Path | None = None,
    environment: dict[str, str] | None = None,
    flags: dict[str, Flag] | None = None,
) -> str:
    with pytest.raises(ConfigError) as refused:
        load(SECTIONS, file=file, environment=environment, command_line=flags)
    return str(refused.value)


def source_of(settings: Settings, name: str) -> tuple[object, str]:
    [(value, source)] = [(one.value, one.source) for one in settings.values if one.name == name]
    return value, source


def from_variable(section: str, key: str, text: str) -> object:
    settings = load(SECTIONS, environment={f"OTTLA_{section}_{key}".upper(): text})
    return getattr(settings.configs[section], key)
