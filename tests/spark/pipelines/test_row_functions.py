"""Steps that are functions of Arrow tables or pandas frames, with a schema for what they return."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("pyspark", reason="pyspark is not installed: pip install 'ottla[spark]'")

import pyarrow as pa
from tests.spark.conftest import Cluster
from tests.spark.pipelines.conftest import Pipelines

from ottla.core.errors import ConfigError
from ottla.spark.pipelines.loading import parse_pipeline
from ottla.spark.pipelines.mapped_rows import OfArrow, OfPandas

STEPS = """
def taxed(rows):
    import pyarrow.compute as pc

    return rows.append_column("taxed", pc.multiply(rows["price"], 1.2))


def large(rows):
    return rows[rows["taxed"] > 2].assign(size="large")
"""
FILE = """
[source.orders]
topics = "{topic}"
schema = "id bigint, price double, at timestamp"
dead_letters = "none"
[step.taxed]
arrow = {{ from = "orders", function = "steps.py:taxed", schema = "id int, taxed double, at timestamp" }}
[step.large]
pandas = {{ from = "taxed", function = "steps.py:large", schema = "id bigint, size string, at timestamp" }}
[sink.table]
kind = "parquet"
path = "table"
"""
SCHEMA = pa.schema([("id", pa.int32()), ("city", pa.string())])


def test_what_a_function_returns_has_the_types_of_the_schema_or_is_refused_with_its_name() -> None:
    batch = pa.RecordBatch.from_pydict({"id": pa.array([1, 2]), "city": ["Prag", "Wien"]})

    def made(function: Callable[[Any], Any]) -> list[dict[str, Any]]:
        return [row for each in OfArrow(function, "steps.py:f", SCHEMA)([batch]) for row in each.to_pylist()]

    expected = [{"id": 1, "city": "Prag"}, {"id": 2, "city": "Wien"}]
    assert made(lambda rows: rows) == expected
    assert made(OfPandas(lambda rows: rows.iloc[::-1], "steps.py:f")) == expected[::-1]
    assert made(lambda rows: rows.slice(0, 0)) == []
    with pytest.raises(ValueError, match=r"steps.py:f returned no column id \(columns: city\)"):
        made(lambda rows: rows.select(["city"]))
    with pytest.raises(ValueError, match=r"steps.py:f returned string as column id, which does not fit int32"):
        made(lambda rows: rows.set_column(0, "id", rows["city"]))
    with pytest.raises(TypeError, match=r"must return a pyarrow.Table, not list"):
        made(lambda rows: rows.to_pylist())
    with pytest.raises(TypeError, match=r"must return a pandas.DataFrame, not int"):
        made(OfPandas(len, "steps.py:f"))


def test_mistakes_in_the_file_are_found_without_spark(tmp_path: Path) -> None:
    (tmp_path / "steps.py").write_text(STEPS)
    text = FILE.format(topic="orders")
    assert parse_pipeline(text, tmp_path / "shop.toml", {}).steps[1].rows is not None
    for old, new, said in (
        ('from = "orders", ', 'from = "order", ', "there is no source or step order before this one; did you mean"),
        ("steps.py:taxed", "steps.py:taxes", "steps.py has no function taxes; did you mean taxed?"),
        ("id int, ", "id itn, ", "schema: "),
        (', function = "steps.py:large"', "", "needs function"),
        ('kind = "parquet"', 'kind = "parquet"\npartition_by = "sise"', "partition_by: there is no column sise"),
    ):
        assert old in text
        with pytest.raises(ConfigError, match=said.replace("?", r"\?")):
            parse_pipeline(text.replace(old, new), tmp_path / "shop.toml", {})


@pytest.mark.timeout(300)
def test_rows_pass_through_functions_of_arrow_and_of_pandas(
    pipelines: Pipelines, cluster: Cluster, send: Callable[..., None]
) -> None:
    topic = cluster.topic()
    (pipelines.folder / "steps.py").write_text(STEPS)
    at = "2026-11-15T09:30:00Z"
    send(topic, [{"id": number, "price": float(number), "at": at} for number in range(4)])

    assert pipelines.run(FILE.format(topic=topic)).state == "finished"

    rows = pipelines.rows()
    assert sorted((row.id, row.size, row.at.isoformat()) for row in rows) == [
        (2, "large", "2026-11-15T09:30:00"),
        (3, "large", "2026-11-15T09:30:00"),
    ]
