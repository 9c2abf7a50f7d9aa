"""Settings of the process that a broker starts for topics with `ottla.table.enable`. Needs no pyiceberg."""

from __future__ import annotations

from msgspec import Struct

from ottla.core.errors import ConfigError


class LakeConfig(Struct, frozen=True, kw_only=True):
    writer: bool = True
    """Run a table writer beside the broker while a topic has ottla.table.enable. Disable it if that runs elsewhere."""
    catalog: tuple[str, ...] = ()
    """The catalog, as properties of PyIceberg: type=rest, uri=https://catalog.example.com. Empty: catalog.db (SQLite)
    in `lake` of the data folder. Nodes of a cluster need a catalog that all of them reach."""
    warehouse: str = ""
    """Where data files are: a folder, or an address such as s3://bucket/lake. Empty: lake/warehouse in the data
    folder."""
    namespace: str = "topics"
    """The namespace of the tables."""
    broker: str = ""
    """The table [brokers.NAME] of the configuration file by which the process connects and logs in. Empty: a PLAINTEXT
    listener of this broker."""
    registry: str = ""
    """The URL of the schema registry. Empty: that of this broker."""

    def __post_init__(self) -> None:
        try:
            catalog_properties(self.catalog, "catalog")
        except ConfigError as wrong:
            raise ValueError(str(wrong)) from None


def catalog_properties(given: tuple[str, ...], name: str) -> dict[str, str]:
    """Properties for pyiceberg from texts such as type=rest; `name` is that of the setting or option."""
    found = {}
    for each in given:
        key, equals, value = each.partition("=")
        if not equals or not key:
            raise ConfigError(f"{name} must be KEY=VALUE, such as type=rest, got {each!r}")
        found[key] = value
    return found
