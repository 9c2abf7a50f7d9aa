"""Tables of topics, read through the broker's Iceberg REST catalog by programs that others wrote."""

import json
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest
from tests.rest.lake_tables import table_of
from tests.rest.serving import HttpBroker

from interop.iceberg_readers import java_reader, python_reader

TIMEOUT_S = 240


@pytest.fixture(scope="module")
def catalog(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    data = tmp_path_factory.mktemp("tables")
    with HttpBroker(data) as served:
        for topic in ("orders", "eu.orders"):
            for first in (0, 2):
                rows = pa.table({"_offset": [first, first + 1], "item": [f"item {first}", f"item {first + 1}"]})
                table_of(data, topic, rows, {0: first + 2})
        yield f"{served.url}/iceberg"


def run(command: list[str], environment: dict[str, str] | None = None) -> str:
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=TIMEOUT_S, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
    return done.stdout


def test_the_rest_client_of_icebergs_java_library_reads_tables(catalog: str, iceberg: Path) -> None:
    lines = run(java_reader(iceberg, catalog)).splitlines()

    assert lines == [
        "table topics.eu_orders",
        "table topics.orders",
        "row item 2",
        "row item 3",
        "exists false",
        "refused",
        "refused",
    ]


def test_duckdb_attaches_the_catalog(catalog: str, iceberg_packages: Path, tmp_path: Path) -> None:
    answer = json.loads(run(*python_reader(iceberg_packages, "read_with_duckdb.py", catalog, str(tmp_path))))

    assert answer == {"tables": [["topics", "eu_orders"], ["topics", "orders"]], "rows": [["item 2"], ["item 3"]]}


def test_polars_scans_a_table(catalog: str, iceberg_packages: Path) -> None:
    answer = json.loads(run(*python_reader(iceberg_packages, "read_with_polars.py", catalog)))

    assert answer == {"rows": [["item 2"], ["item 3"]]}
