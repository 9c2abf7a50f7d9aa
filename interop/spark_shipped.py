"""A Spark program for a cluster without Ottla: reads a topic, and says where its workers found the source."""

import sys
from collections.abc import Iterator
from typing import Any

import ottla.spark

servers, master = sys.argv[1:]
config = {"spark.executor.memory": "512m", "spark.driver.host": "127.0.0.1"}
spark = ottla.spark.session("shipped", master=master, config=config)
topic = spark.read.format("ottla").option("kafka.bootstrap.servers", servers).option("subscribe", "source").load()


def imported_from(batches: Iterator[Any]) -> Iterator[Any]:
    """In a worker: where our package is, and whether its codec is compiled."""
    import pyarrow as pa

    from ottla.records import decode_columns

    for batch in batches:
        yield pa.RecordBatch.from_pydict({"at": [decode_columns.__file__], "rows": [batch.num_rows]})


found = topic.mapInArrow(imported_from, "at string, rows bigint").groupBy("at").sum("rows").collect()
print(topic.count(), *(f"{row[0]}={row[1]}" for row in found), flush=True)
