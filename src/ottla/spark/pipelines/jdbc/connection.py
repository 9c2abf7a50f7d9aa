"""A JDBC connection in the JVM of the Spark driver."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ottla.core.errors import ConfigError, OttlaError
from ottla.spark.pipelines.jdbc.statements import DatabaseColumn

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from types import TracebackType
    from typing import Self

    from py4j.java_gateway import JavaObject
    from pyspark.sql import SparkSession


class DatabaseFailed(OttlaError):
    """An error of the database or its driver."""


class JdbcConnection:
    """Commits explicitly; closing it rolls back an open transaction."""

    def __init__(self, spark: SparkSession, options: Mapping[str, str]) -> None:
        if not hasattr(spark, "_jsparkSession"):
            raise ConfigError("a jdbc sink needs Spark's driver in this process; it does not work with sc:// masters")
        self._jvm: Any = spark._jvm  # noqa: SLF001 - the only way to Java
        self._options = dict(options)
        url = options["url"]
        self._dialect = self._jvm.org.apache.spark.sql.jdbc.JdbcDialects.get(url)
        try:
            factory = self._dialect.createConnectionFactory(self._spark_options("none"))
        except Exception as failed:
            if "driver" in str(failed).lower():
                raise ConfigError(
                    f'there is no JDBC driver for {url.partition("?")[0]}; name its jar with jars = ["driver.jar"], '
                    'and its class with options = { driver = "…" } if Spark does not know it'
                ) from None
            raise
        self._connection: Any = self._called(lambda: factory.apply(-1))

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if not self._connection.getAutoCommit():
            self._connection.rollback()
        self._connection.close()

    def begin(self) -> None:
        if self._connection.getMetaData().supportsTransactions():
            self._connection.setAutoCommit(False)

    def commit(self) -> None:
        if not self._connection.getAutoCommit():
            self._called(self._connection.commit)
            self._connection.setAutoCommit(True)

    def execute(self, statement: str) -> None:
        made = self._connection.createStatement()
        try:
            self._called(lambda: made.execute(statement))
        finally:
            made.close()

    def number(self, query: str) -> int | None:
        """The first value of the first row."""
        made = self._connection.createStatement()
        try:
            rows = self._called(lambda: made.executeQuery(query))
            return int(rows.getLong(1)) if rows.next() else None
        finally:
            made.close()

    def has_table(self, table: str) -> bool:
        """Whether a table exists, outside of a transaction: querying it is the only portable way."""
        try:
            self.execute(str(self._dialect.getTableExistsQuery(table)))
        except DatabaseFailed:
            return False
        return True

    def columns(self, table: str) -> list[DatabaseColumn]:
        made = self._connection.createStatement()
        try:
            about = self._called(lambda: made.executeQuery(f"SELECT * FROM {table} WHERE 1 = 0")).getMetaData()  # noqa: S608
            return [
                DatabaseColumn(about.getColumnName(at), about.getColumnType(at), about.getPrecision(at))
                for at in range(1, about.getColumnCount() + 1)
            ]
        finally:
            made.close()

    def tables(self, prefix: str) -> list[str]:
        rows = self._connection.getMetaData().getTables(None, None, "%", None)
        found = []
        while rows.next():
            if (name := rows.getString("TABLE_NAME")).lower().startswith(prefix):
                found.append(name)
        return found

    def quoted(self, name: str) -> str:
        return str(self._dialect.quoteIdentifier(name))

    def type_of(self, spark_type: str) -> str:
        """The database's name for a Spark type."""
        kind = self._jvm.org.apache.spark.sql.types.DataType.fromDDL(spark_type)
        utils = self._jvm.org.apache.spark.sql.execution.datasources.jdbc.JdbcUtils
        return str(self._called(lambda: utils.getJdbcType(kind, self._dialect)).databaseTypeDefinition())

    def add_column(self, table: str, column: str, kind: str) -> None:
        self.execute(str(self._dialect.getAddColumnQuery(table, column, kind)))

    def _spark_options(self, table: str) -> JavaObject:
        given = self._jvm.java.util.HashMap()
        for name, value in {**self._options, "dbtable": table}.items():
            given.put(name, value)
        options = self._jvm.PythonUtils.toScalaMap(given)
        return self._jvm.org.apache.spark.sql.execution.datasources.jdbc.JDBCOptions(options)

    def _called(self, call: Callable[[], JavaObject]) -> JavaObject:
        """Run a call, and raise the database's message on an error."""
        from py4j.protocol import Py4JJavaError

        try:
            return call()
        except Py4JJavaError as failed:
            raise DatabaseFailed(str(failed.java_exception.getMessage() or failed.java_exception)) from None
