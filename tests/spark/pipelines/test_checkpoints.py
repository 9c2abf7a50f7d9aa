"""Where checkpoints may be: a folder, or an address that Spark has a file system for."""

from pathlib import Path

import pytest
from tests.spark.pipelines.conftest import Pipelines

from ottla.core.errors import ConfigError
from ottla.spark.pipelines.loading import parse_pipeline

FILE = """
checkpoint = "{checkpoint}"
[source.orders]
schema = "id bigint"
dead_letters = "none"
[sink.table]
kind = "parquet"
path = "table"
"""


def test_a_checkpoint_is_relative_to_the_file_unless_it_is_an_address(tmp_path: Path) -> None:
    def checkpoint(given: str) -> str:
        return parse_pipeline(FILE.format(checkpoint=given), tmp_path / "shop.toml", {}).checkpoint

    assert checkpoint("kept") == str(tmp_path / "kept")
    assert checkpoint("/srv/kept") == "/srv/kept"
    assert checkpoint("hdfs://main/kept") == "hdfs://main/kept"


@pytest.mark.timeout(300)
def test_an_address_without_a_file_system_is_refused_with_the_package_that_has_it(pipelines: Pipelines) -> None:
    from ottla.spark.pipelines.queries import planned_queries

    for address, package in (
        ("s3://lake/kept", "use s3a:// for S3, with the package org.apache.hadoop:hadoop-aws:3"),
        ("s3a://lake/kept", '"spark.jars.packages" = "org.apache.hadoop:hadoop-aws:3'),
        ("abfs://kept@shop.dfs.core.windows.net/x", '"org.apache.hadoop:hadoop-azure:3'),
        ("gs://lake/kept", '"com.google.cloud.bigdataoss:gcs-connector:'),
        ("ftps://lake/kept", "spark.jars"),
    ):
        with pytest.raises(ConfigError, match=f"^checkpoint: Spark has no file system for {address}; .*") as refused:
            planned_queries(pipelines.spark, pipelines.load(FILE.format(checkpoint=address)))
        assert package in str(refused.value)
