"""Orders as they come, and what each item sold."""

import os

from pyspark import pipelines as dp
from pyspark.sql import DataFrame, SparkSession

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
    return spark.read.table("orders").groupBy("item").agg({"id": "count", "price": "sum"}).toDF("item", "sold", "price")
