"""Prints some rows of a table in a REST catalog, as JSON, with Polars."""

import json
import sys

import polars as pl
from pyiceberg.catalog import load_catalog

table = load_catalog("ottla", type="rest", uri=sys.argv[1]).load_table("topics.orders")
rows = pl.scan_iceberg(table).filter(pl.col("_offset") > 1).select("item").sort("item").collect()
print(json.dumps({"rows": rows.rows()}))
