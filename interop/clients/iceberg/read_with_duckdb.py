"""Prints the tables of a REST catalog and some rows of one, as JSON, with DuckDB's Iceberg extension from PyPI."""

import json
import sys

import duckdb
from duckdb_extensions import import_extension

database = duckdb.connect(config={"extension_directory": sys.argv[2]})
for name in ("avro", "httpfs", "iceberg"):
    import_extension(name, con=database)
database.sql("LOAD iceberg")
database.sql(f"ATTACH '' AS ottla (TYPE iceberg, ENDPOINT '{sys.argv[1]}', AUTHORIZATION_TYPE 'none')")
tables = database.sql("SELECT schema, name FROM (SHOW ALL TABLES) ORDER BY ALL").fetchall()
rows = database.sql("SELECT item FROM ottla.topics.orders WHERE _offset > 1 ORDER BY item").fetchall()
print(json.dumps({"tables": tables, "rows": rows}))
