"""The examples in docs/spark.md work."""

import re
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from tests.spark.conftest import Cluster

from ottla import Admin

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.timeout(300)
DOCS = Path(__file__).parents[2] / "docs" / "spark.md"


def test_from_topic_to_table(
    spark: "SparkSession", cluster: Cluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first, *_ = re.findall(r"```python\n(.*?)```", DOCS.read_text("utf-8"), re.DOTALL)
    monkeypatch.chdir(tmp_path)
    # Spark's own idea of where it works is that of its start.
    shown = first.replace("localhost:9092", cluster.servers).replace('"tables/', f'"{tmp_path}/tables/')

    exec(compile(shown, "docs/spark.md", "exec"), {})  # noqa: S102 - it is ours

    assert spark.read.parquet(str(tmp_path / "tables" / "orders")).count() == 10_000
    spark.sparkContext._jsc.sc().listenerBus().waitUntilEmpty()
    with Admin(cluster.servers) as admin:
        assert sum(committed.offset for committed in admin.group_offsets("orders-to-table").values()) == 10_000
