"""Kill a Spark driver between two commits of a micro-batch or batch write, and continue with the next one."""

import contextlib
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from tests.spark.conftest import QUICK_JVM, Cluster

from ottla.testing import EphemeralBroker

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.timeout(600)

ROWS = 200
PATIENCE_S = 300.0
ON_LINUX = pytest.mark.skipif(sys.platform != "linux", reason="the processes of a session are found in /proc")
DRIVER = """
import sys, ottla.spark
servers, checkpoint, jvm = sys.argv[1:]
spark = ottla.spark.session("copy", master="local[2]", config={"spark.driver.extraJavaOptions": jvm})
rows = spark.readStream.format("ottla").option("kafka.bootstrap.servers", servers)
rows = rows.option("subscribe", "source").option("startingOffsets", "earliest").option("minPartitions", 2).load()
rows = rows.select("key", "value")
query = rows.writeStream.format("ottla").option("kafka.bootstrap.servers", servers).option("topic", "sink")
query.option("checkpointLocation", checkpoint).trigger(availableNow=True).start().awaitTermination()
"""
BATCH_DRIVER = """
import sys, ottla.spark
servers, write_id, jvm = sys.argv[1:]
spark = ottla.spark.session("load", master="local[2]", config={"spark.driver.extraJavaOptions": jvm})
rows = spark.read.format("ottla").option("kafka.bootstrap.servers", servers).option("subscribe", "source").load()
writer = rows.select("key", "value").write.format("ottla").option("kafka.bootstrap.servers", servers)
writer.option("topic", "sink").option("writeId", write_id).mode("append").save()
"""


@pytest.fixture
def broker() -> Iterator[EphemeralBroker]:
    with EphemeralBroker() as running:
        running.create_topic("source", partitions=2)
        running.create_topic("sink")
        for number in range(ROWS):
            running.produce("source", b"%d" % number, partition=number % 2)
        yield running


def kill_session(session: int) -> None:
    """The driver, its JVM and their Python workers.

    The workers have separate process groups, and one that is busy with a commit would finish it.
    """
    for process in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            # After the name, which may have anything in it: state, parent, group, session.
            if int((process / "stat").read_text().rpartition(")")[2].split()[3]) == session:
                os.kill(int(process.name), signal.SIGKILL)


def kill_between_two_commits(broker: EphemeralBroker, driver: str, name: str) -> None:
    """Run a driver, and kill it when one of its two transactions is committed and the other is not."""
    with broker.faults.drop(api="EndTxn", after_effect=True, times=1), broker.faults.drop(api="EndTxn") as refusing:
        command = [sys.executable, "-c", driver, broker.bootstrap_servers, name, QUICK_JVM]
        process = subprocess.Popen(command, start_new_session=True)
        try:
            refusing.wait(timeout_s=PATIENCE_S)
        finally:
            kill_session(process.pid)
            process.wait()


@ON_LINUX
def test_a_half_committed_micro_batch_is_completed_after_a_driver_kill_and_not_repeated(
    spark: "SparkSession", broker: EphemeralBroker, run: Callable[..., Any], tmp_path: Path
) -> None:
    cluster = Cluster(broker, tmp_path)
    kill_between_two_commits(broker, DRIVER, str(tmp_path / "checkpoint"))
    # Half of it is committed; readers wait for the rest if that began earlier.
    assert len(cluster.values(spark, "sink")) in (0, ROWS // 2)

    frame = cluster.reader(spark.readStream, subscribe="source", startingOffsets="earliest", minPartitions=2).load()
    run(frame.select("key", "value"), "ottla", kafka__bootstrap__servers=cluster.servers, topic="sink")

    assert cluster.values(spark, "sink") == cluster.values(spark, "source")
    assert len(cluster.values(spark, "sink", "read_uncommitted")) == ROWS


@ON_LINUX
def test_a_half_committed_batch_write_is_completed_by_the_next_call_with_its_write_id(
    spark: "SparkSession", broker: EphemeralBroker, tmp_path: Path
) -> None:
    cluster = Cluster(broker, tmp_path)
    kill_between_two_commits(broker, BATCH_DRIVER, "nightly")
    assert len(cluster.values(spark, "sink")) in (0, ROWS // 2)

    for _ in range(2):  # the second call finds it finished
        writer = cluster.read(spark, "source").select("key", "value").write.format("ottla")
        writer = writer.option("kafka.bootstrap.servers", cluster.servers).option("topic", "sink")
        writer.option("writeId", "nightly").mode("append").save()

        assert cluster.values(spark, "sink") == cluster.values(spark, "source")
        assert len(cluster.values(spark, "sink", "read_uncommitted")) == ROWS
