"""Settings of the schema registry."""

from __future__ import annotations

from typing import Final

from msgspec import Struct

REGISTRY_PREFIX: Final = "/schema-registry"
"""The path prefix of the registry on the HTTP port."""
REGISTRY_MEDIA_TYPE: Final = "application/vnd.schemaregistry.v1+json"


class SchemaRegistryConfig(Struct, frozen=True, kw_only=True):
    port: int = -1
    """A port that serves the schema registry at its root, as clients of Confluent's expect it; 0 picks a free one, -1
    serves none. It is always served below /schema-registry on the HTTP port."""

    def __post_init__(self) -> None:
        if not -1 <= self.port <= 65535:
            raise ValueError(f"port must be between -1 and 65535, got {self.port}")
