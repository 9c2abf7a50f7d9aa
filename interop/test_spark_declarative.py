"""The example for Spark Declarative Pipelines, run as its README says, twice."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from ottla import Producer
from ottla.broker.embedded import EmbeddedBroker

from .spark_standalone import ENVIRONMENT

pytestmark = [pytest.mark.timeout(900), pytest.mark.long]
pytest.importorskip("pyspark.pipelines", reason="pyspark[pipelines] is not installed")
pytest.importorskip("grpc", reason="pyspark[pipelines] is not installed")

EXAMPLE = Path(__file__).parents[1] / "examples" / "declarative"


@pytest.fixture
def project(tmp_path: Path) -> Path:
    folder = tmp_path / "project"
    shutil.copytree(EXAMPLE, folder)
    spec = folder / "spark-pipeline.yml"
    shown = spec.read_text()
    assert "file:///tmp/ottla-declarative" in shown
    spec.write_text(shown.replace("file:///tmp/ottla-declarative", (tmp_path / "storage").as_uri()))
    return folder


def run(project: Path, servers: str) -> None:
    environment = {
        **ENVIRONMENT,
        "OTTLA_BROKER": servers,
        "SPARK_CONF_DIR": str(project / "conf"),
        "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
    }
    ended = subprocess.run(
        ["spark-pipelines", "run"],
        cwd=project, env=environment, check=False, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
    )  # fmt: skip
    assert ended.returncode == 0, ended.stdout[-4000:]
    assert "Run is COMPLETED" in ended.stdout


def test_a_streaming_table_takes_new_records_in_each_run(project: Path) -> None:
    with EmbeddedBroker() as broker:
        for first in (0, 100):
            with Producer(broker.bootstrap_servers) as producer:
                for number in range(first, first + 100):
                    order = b'{"id": %d, "item": "item-%d", "price": 2}' % (number, number % 5)
                    producer.send("orders", order)
            run(project, broker.bootstrap_servers)

    tables = project / "spark-warehouse"
    assert sorted(pq.read_table(tables / "orders").column("id").to_pylist()) == list(range(200))
    sales = {row["item"]: (row["sold"], row["price"]) for row in pq.read_table(tables / "sales").to_pylist()}
    assert sales == {f"item-{number}": (40, 80) for number in range(5)}
