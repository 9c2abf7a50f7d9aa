"""Where tables are: the catalog and the warehouse."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from ottla.core.errors import ConfigError
from ottla.lake.names import CATALOG_NAME, DEFAULT_NAMESPACE

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pyiceberg.catalog import Catalog


@dataclass(frozen=True, slots=True, kw_only=True)
class LakeSettings:
    folder: Path
    """`lake` in the data folder of a broker: has `catalog.db` and `warehouse`, unless these are elsewhere."""
    warehouse: str = ""
    """A folder or an address such as s3://bucket/path; empty for `warehouse` in the folder."""
    catalog: Mapping[str, str] = field(default_factory=dict, repr=False)
    """Properties for pyiceberg, such as type and uri; empty for SQLite in the folder. As `catalog` of pipelines."""
    namespace: str = DEFAULT_NAMESPACE

    @property
    def database(self) -> Path:
        return self.folder / "catalog.db"

    def warehouse_address(self) -> str:
        if "://" in self.warehouse:
            return self.warehouse.rstrip("/")
        place = Path(self.warehouse).absolute() if self.warehouse else self.folder.absolute() / "warehouse"
        return f"file://{place}"

    def properties(self) -> dict[str, str]:
        """As pyiceberg's `load_catalog` takes them."""
        if self.catalog:
            given = {"warehouse": self.warehouse_address()} if self.warehouse else {}
            return {**given, **self.catalog}
        return {"type": "sql", "uri": f"sqlite:///{self.database.absolute()}", "warehouse": self.warehouse_address()}


def open_catalog(settings: LakeSettings) -> Catalog:
    try:
        from pyiceberg.catalog import load_catalog
    except ImportError:
        raise ConfigError("tables need the package pyiceberg; run: pip install 'ottla[lake]'") from None
    if not settings.catalog:
        settings.folder.mkdir(parents=True, exist_ok=True)
    return load_catalog(settings.catalog.get("name", CATALOG_NAME), **settings.properties())
