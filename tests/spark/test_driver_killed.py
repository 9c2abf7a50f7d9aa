"""A driver of Spark is killed between two of a micro-batch's commits, and the next one on its checkpoint goes on."""

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
DRIVER = """
import sys, ottla.spark
servers, checkpoint, jvm = sys.argv[1:]
spark = ottla.spark.session("copy", master="local[2]", config={"spark.driver.extraJavaOptions": jvm})
rows = spark.readStream.format("ottla").option("kafka.bootstrap.servers", servers)
rows = rows.option("subscribe", "source").option("startingOffsets", "earliest").load().select("key", "value")
query = rows.writeStream.format("ottla").option("kafka.bootstrap.servers", servers).option("topic", "sink")
query.option("checkpointLocation", checkpoint).trigger(availableNow=True).start().awaitTermination()
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
    """The driver, its JVM and their Python workers. These have a process group of their own, and one that is busy with
    a commit would end it.
    """
    for process in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            # After the name, which may have anything in it: state, parent, group, session.
            if int((process / "stat").read_text().rpartition(")")[2].split()[3]) == session:
                os.kill(int(process.name), signal.SIGKILL)


@pytest.mark.skipif(sys.platform != "linux", reason="the processes of a session are found in /proc")
def test_what_was_half_committed_when_the_driver_was_killed_is_committed_and_not_written_again(
    spark: "SparkSession", broker: EphemeralBroker, run: Callable[..., Any], tmp_path: Path
) -> None:
    cluster = Cluster(broker, tmp_path)
    with broker.faults.drop(api="EndTxn", after_effect=True, times=1), broker.faults.drop(api="EndTxn") as refusing:
        command = [sys.executable, "-c", DRIVER, broker.bootstrap_servers, str(tmp_path / "checkpoint"), QUICK_JVM]
        driver = subprocess.Popen(command, start_new_session=True)
        try:
            refusing.wait(timeout_s=PATIENCE_S)
        finally:
            kill_session(driver.pid)
            driver.wait()
    # Half of it is committed; readers wait for the rest if that began earlier.
    assert len(cluster.values(spark, "sink")) in (0, ROWS // 2)

    frame = cluster.reader(spark.readStream, subscribe="source", startingOffsets="earliest").load()
    run(frame.select("key", "value"), "ottla", kafka__bootstrap__servers=cluster.servers, topic="sink")

    assert cluster.values(spark, "sink") == cluster.values(spark, "source")
    assert len(cluster.values(spark, "sink", "read_uncommitted")) == ROWS
