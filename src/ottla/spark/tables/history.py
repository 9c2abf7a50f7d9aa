"""The current snapshot of a table, in Spark's own readers."""

from __future__ import annotations

import hashlib
import logging
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from ottla.core.errors import ConfigError, OttlaError
from ottla.lake.covered import covered
from ottla.lake.names import DEFAULT_NAMESPACE, KEY, TOPIC, table_of
from ottla.spark.tables.columns import BY_ID, has_renamed_columns, spark_schema
from ottla.spark.tables.decoding import value_settings

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import StructType

    from ottla.lake.covered import Covered
    from ottla.lake.values import ValueSettings

DEFAULT_CATALOG: Final = "http://localhost:8080/iceberg"
_JAR: Final = "org.apache.iceberg.spark.SparkCatalog"
_MISFITS: Final = tuple(
    f"java.lang.{each}Error"
    for each in ("AbstractMethod", "IncompatibleClassChange", "NoClassDefFound", "NoSuchField", "NoSuchMethod")
)
_log: Final = logging.getLogger(__name__)

Catalog = str | Path | dict[str, Any]


@dataclass(frozen=True, slots=True)
class History:
    """A snapshot of a topic's table, and the offsets that it has."""

    topic: str
    properties: dict[str, Any]
    """Of the catalog, as pyiceberg takes them."""
    table: Any
    """pyiceberg's Table."""
    covered: Covered

    @property
    def snapshot_id(self) -> int | None:
        found: int | None = self.table.metadata.current_snapshot_id
        return found

    @property
    def is_keyed(self) -> bool:
        """Whether the table has only the last row of each key."""
        return KEY in self.table.metadata.properties

    def values(self) -> ValueSettings:
        """How the values of records become its columns."""
        schema = self.table.schema()
        return value_settings(self.table.metadata.properties, [each.name for each in schema.fields])

    def schema(self) -> StructType:
        return spark_schema(self.table.schema())


def open_history(topic: str, catalog: Catalog) -> History:
    try:
        from pyiceberg.catalog import load_catalog
        from pyiceberg.exceptions import NoSuchTableError
    except ImportError:
        raise ConfigError("tables need the package pyiceberg; run: pip install 'ottla[lake]'") from None
    properties = catalog_properties(catalog)
    name = table_of(topic, properties.pop("namespace", DEFAULT_NAMESPACE))
    try:
        table = load_catalog("ottla", **properties).load_table(name)
    except NoSuchTableError:
        raise OttlaError(
            f"topic {topic} has no table {name} in {properties.get('uri')}; run: ottla lake run {topic}"
        ) from None
    written_from = table.metadata.properties.get(TOPIC, topic)
    if written_from != topic:
        raise OttlaError(f"table {name} belongs to topic {written_from}, not to {topic}")
    return History(topic, properties, table, covered(table))


def catalog_properties(catalog: Catalog) -> dict[str, Any]:
    """For pyiceberg: from the URL of a REST catalog, the data folder of a broker, or properties."""
    if isinstance(catalog, dict):
        return dict(catalog)
    if isinstance(catalog, str) and catalog.startswith(("http://", "https://")):
        return {"type": "rest", "uri": catalog.rstrip("/")}
    folder = Path(catalog).absolute()
    places = [folder / "lake" / "catalog.db", folder / "catalog.db"]
    database = next((each for each in places if each.exists()), None)
    if database is None:
        raise ConfigError(
            f"no tables in {folder}: it has no {places[0].relative_to(folder)}; catalog must be the URL of an Iceberg "
            "REST catalog, the data folder of a broker, or properties for pyiceberg"
        )
    return {"type": "sql", "uri": f"sqlite:///{database}"}


def rows_of(spark: SparkSession, history: History) -> DataFrame:
    """All rows of the snapshot."""
    if history.snapshot_id is None:
        return spark.createDataFrame([], history.schema())
    return _with_jar(spark, history) or _parquet(spark, history)


def _with_jar(spark: SparkSession, history: History) -> DataFrame | None:
    """By Iceberg's reader; None without its jar, or if that is for another version of Spark."""
    catalog = jar_catalog(spark, history.properties)
    if catalog is None:
        return None
    from py4j.protocol import Py4JJavaError

    name = ".".join(f"`{each}`" for each in (catalog, *history.table.name()))
    try:
        return spark.read.option("snapshot-id", str(history.snapshot_id)).table(name)
    except Py4JJavaError as failed:
        if failed.java_exception.getClass().getName() not in _MISFITS:
            raise
        _log.warning("the jar of Iceberg does not fit Spark %s; reading Parquet files without it", spark.version)
        return None


def _parquet(spark: SparkSession, history: History) -> DataFrame:
    files = list(data_files(history))
    if not files:
        return spark.createDataFrame([], history.schema())
    schema = file_schema(spark, history)
    # Folders such as day=2026-11-16 are not columns.
    read = spark.read.schema(schema).option("recursiveFileLookup", "true").parquet(*files)
    return without_ids(read, history)


def file_schema(spark: SparkSession, history: History) -> StructType:
    """For Spark's Parquet reader. Renamed columns are found by their ids in the files."""
    about = history.table.metadata
    by_id = has_renamed_columns(about.schemas, history.table.schema())
    if by_id:
        for name, value in BY_ID.items():
            spark.conf.set(name, value)
    return spark_schema(history.table.schema(), by_id=by_id)


def without_ids(rows: DataFrame, history: History) -> DataFrame:
    """Without the ids of columns, which would be written into files made from them."""
    from pyspark.sql import functions as F  # noqa: N812 - as everybody calls it

    if not any(field.metadata for field in rows.schema.fields):
        return rows
    return rows.select(*(F.col(f"`{name}`").alias(name, metadata={}) for name in history.schema().names))


def data_files(history: History) -> Mapping[str, int]:
    """The size by address, of all files of the snapshot."""
    sizes = {}
    for task in history.table.scan(snapshot_id=history.snapshot_id).plan_files():
        if task.delete_files:
            raise OttlaError(
                f"table {'.'.join(history.table.name())} has delete files, which Spark's Parquet reader cannot apply; "
                "compact the table, or start Spark with the jar iceberg-spark-runtime and use a REST catalog"
            )
        sizes[task.file.file_path] = task.file.file_size_in_bytes
    return sizes


def jar_catalog(spark: SparkSession, properties: Mapping[str, Any]) -> str | None:
    """The name of a Spark catalog for a REST catalog, configured now; None without the jar of Iceberg."""
    if properties.get("type") != "rest" or not _has_jar(spark):
        return None
    name = "ottla_" + hashlib.sha256(repr(sorted(properties.items())).encode()).hexdigest()[:8]
    for key, value in catalog_settings(name, properties).items():
        spark.conf.set(key, value)
    return name


def catalog_settings(name: str, properties: Mapping[str, Any]) -> dict[str, str]:
    """Settings of Spark for a catalog of this name, with Iceberg's jar."""
    prefix = f"spark.sql.catalog.{name}"
    login = properties.get("auth", {})
    given = {key: str(value) for key, value in properties.items() if isinstance(value, str)}
    if login.get("type") == "basic":
        basic = login["basic"]
        given |= {
            "rest.auth.type": "basic",
            "rest.auth.basic.username": basic["username"],
            "rest.auth.basic.password": basic["password"],
        }
    return {prefix: _JAR, **{f"{prefix}.{key}": value for key, value in given.items()}}


def _has_jar(spark: SparkSession) -> bool:
    jvm: Any = getattr(spark, "_jvm", None)
    if jvm is None:  # Spark Connect
        return False
    loader = jvm.org.apache.spark.util.Utils.getContextOrSparkClassLoader()
    return loader.getResource(_JAR.replace(".", "/") + ".class") is not None
