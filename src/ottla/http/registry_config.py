"""Settings of the schema registry."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

REGISTRY_PREFIX: Final = "/schema-registry"
"""Below this it is served on the HTTP port."""
REGISTRY_MEDIA_TYPE: Final = "application/vnd.schemaregistry.v1+json"


@dataclass(frozen=True, slots=True, kw_only=True)
class SchemaRegistryConfig:
    port: int = -1
    """A port that serves the schema registry at its root, as clients of Confluent's expect it; 0 picks a free one, -1
    serves none. It is always served below /schema-registry on the HTTP port."""

    def __post_init__(self) -> None:
        if not -1 <= self.port <= 65535:
            raise ValueError(f"port must be between -1 and 65535, got {self.port}")
