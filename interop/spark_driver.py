"""A Spark program that copies a topic to another in small micro-batches; run, killed and run again by a test."""

import sys

import ottla.spark

servers, source, sink, checkpoint, master = sys.argv[1:]
config = {"spark.sql.shuffle.partitions": "2", "spark.executor.memory": "512m", "spark.driver.host": "127.0.0.1"}
spark = ottla.spark.session("copy", master=master, config=config)
rows = (
    spark.readStream.format("ottla")
    .option("kafka.bootstrap.servers", servers)
    .option("subscribe", source)
    .option("startingOffsets", "earliest")
    .option("maxOffsetsPerTrigger", "500")
    .load()
    # Through a shuffle, so that the order of a task's rows is not the same when it is repeated.
    .repartition(2, "key")
    .select("key", "value")
)
query = (
    rows.writeStream.format("ottla")
    .option("kafka.bootstrap.servers", servers)
    .option("topic", sink)
    .option("checkpointLocation", checkpoint)
    .trigger(availableNow=True)
    .start()
)
query.awaitTermination()
print("done", flush=True)
