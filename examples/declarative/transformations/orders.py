"""Incoming orders, and sales by item."""

import os

from pyspark import pipelines as dp
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - the usual name

spark = SparkSession.active()


@dp.table(comment="Every order of the topic, once")
def orders() -> DataFrame:
    return (
        spark.readStream.format("ottla")
        .option("kafka.bootstrap.servers", os.environ.get("OTTLA_BROKER", "localhost:9092"))
        .option("subscribe", "orders")
        .option("startingOffsets", "earliest")
        .load()
        .selectExpr(
            "from_json(CAST(value AS string), 'id bigint, item string, price int') AS made",
            "timestamp",
            "partition",
            "offset",
        )
        .select("made.*", "timestamp", "partition", "offset")
    )


@dp.materialized_view(comment="How many of each item were sold, and for how much")
def sales() -> DataFrame:
    sold, price = F.count("id").alias("sold"), F.sum("price").alias("price")
    return spark.read.table("orders").groupBy("item").agg(sold, price)
