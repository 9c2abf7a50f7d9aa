"""Schemas in files."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import click

from ottla.core.errors import ConfigError, OttlaError

if TYPE_CHECKING:
    from pathlib import Path

    from ottla.registry.model import Schema

TYPES: Final = {".avsc": "AVRO", ".json": "JSON", ".proto": "PROTOBUF"}


def schema_in(file: Path, kind: str | None = None) -> Schema:
    """Load a schema file; its suffix gives the type by default."""
    from ottla.registry.model import Schema

    found = kind.upper() if kind else TYPES.get(file.suffix.lower())
    if found is None:
        raise ConfigError(f"the type of the schema in {file} is unknown; pass --type")
    return Schema(text_in(file), found)


def text_in(file: Path) -> str:
    try:
        with click.open_file(str(file), encoding="utf-8") as opened:
            return str(opened.read())
    except OSError as failed:
        raise OttlaError(f"cannot read {file}: {failed.strerror}") from None
    except UnicodeDecodeError:
        raise OttlaError(f"{file} is not UTF-8") from None
