"""Steps: windows and late data, deduplication, joins, and stateful steps."""

import sys
import textwrap
from collections.abc import Callable
from typing import Any

import pytest
from tests.spark.conftest import Cluster
from tests.spark.pipelines.conftest import Pipelines

from ottla.core.errors import ConfigError

pytestmark = pytest.mark.timeout(300)
Send = Callable[..., None]

ORDERS = """
[source.orders]
topics = "{orders}"
schema = "id bigint, city string, at timestamp"
event_time = "at"
watermark = "1 minute"
dead_letters = "none"
"""
TABLE = '[sink.table]\nkind = "parquet"\npath = "table"\n'


def order(number: int, minute: int, city: str = "Prag") -> dict[str, Any]:
    return {"id": number, "city": city, "at": f"2026-01-01T00:{minute:02d}:00Z"}


def test_a_window_is_written_when_closed_and_late_rows_are_counted(
    pipelines: Pipelines, cluster: Cluster, send: Send
) -> None:
    topic = cluster.topic()
    text = (
        ORDERS.format(orders=topic)
        + """
[step.per_minute]
sql = '''
SELECT window.start AS minute, city, count(*) AS orders FROM orders GROUP BY window(at, '1 minute'), city
'''
"""
        + TABLE
    )
    send(topic, [order(1, 0), order(2, 0), order(3, 5)])
    first = pipelines.run(text)
    # The watermark is at 00:04 now: the first is late, the second is not.
    send(topic, [order(4, 1), order(5, 5), order(6, 9)])
    second = pipelines.run(text)

    assert first.queries[0].watermark == "2026-01-01T00:04:00.000Z"
    assert first.queries[0].state_rows == 1
    assert second.queries[0].late_rows == 1
    rows = {(row.minute.minute, row.orders) for row in pipelines.rows()}
    assert rows == {(0, 2), (5, 2)}


def test_rows_are_deduplicated_joined_with_another_topic_and_with_a_table(
    pipelines: Pipelines, cluster: Cluster, send: Send
) -> None:
    orders, payments = cluster.topic(), cluster.topic()
    (pipelines.folder / "cities.csv").write_text("city,country\nPrag,CZ\nWien,AT\n")
    (pipelines.folder / "joined.sql").write_text("""
        SELECT o.id, p.paid, c.country
        FROM once o
        JOIN payments p ON o.id = p.order_id AND p.at BETWEEN o.at AND o.at + INTERVAL 10 MINUTES
        LEFT JOIN cities c ON o.city = c.city;
    """)
    send(orders, [order(1, 0), order(1, 0), order(2, 1, "Wien"), order(3, 1)])
    send(payments, [{"order_id": number, "paid": number * 10, "at": "2026-01-01T00:05:00Z"} for number in (1, 2, 9)])

    pipelines.run(
        ORDERS.format(orders=orders)
        + f"""
[source.payments]
topics = "{payments}"
schema = "order_id bigint, paid bigint, at timestamp"
event_time = "at"
watermark = "1 minute"
dead_letters = "none"
[table.cities]
format = "csv"
path = "cities.csv"
options = {{header = true}}
[step.once]
deduplicate = {{from = "orders", keys = "id"}}
[step.joined]
sql_file = "joined.sql"
"""
        + TABLE
    )

    assert sorted((row.id, row.paid, row.country) for row in pipelines.rows()) == [(1, 10, "CZ"), (2, 20, "AT")]


COUNTING = '''
from pyspark.sql.streaming import StatefulProcessor
from pyspark.sql.types import StructType


class Count(StatefulProcessor):
    """How many orders a city has had, as they come."""

    def init(self, handle):
        self.count = handle.getValueState("count", "n bigint")

    def handleInputRows(self, key, rows, timers):
        import pandas as pd

        before = self.count.get()[0] if self.count.exists() else 0
        after = before + sum(len(batch) for batch in rows)
        self.count.update((after,))
        yield pd.DataFrame({"city": [key[0]], "orders": [after]})

    def close(self):
        pass


def counted(spark, tables):
    return tables["orders"].groupBy("city").transformWithStateInPandas(
        statefulProcessor=Count(),
        outputStructType="city string, orders bigint",
        outputMode="append",
        timeMode="None",
    )
'''


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.filterwarnings("ignore::FutureWarning")
def test_a_stateful_python_step_keeps_its_state_between_runs(
    pipelines: Pipelines, cluster: Cluster, send: Send
) -> None:
    topic = cluster.topic()
    (pipelines.folder / "steps.py").write_text(COUNTING)
    text = ORDERS.format(orders=topic) + '[step.counted]\npython = "steps.py:counted"\n' + TABLE
    send(topic, [order(1, 0), order(2, 0), order(3, 0, "Wien")])
    pipelines.run(text)
    send(topic, [order(4, 0)])
    pipelines.run(text)

    assert sorted((row.city, row.orders) for row in pipelines.rows()) == [("Prag", 2), ("Prag", 3), ("Wien", 1)]


def test_a_stateful_step_names_its_missing_package(
    pipelines: Pipelines, cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "google.protobuf", None)
    (pipelines.folder / "steps.py").write_text(COUNTING)
    step = '[step.counted]\npython = "steps.py:counted"\n'

    with pytest.raises(ConfigError, match="transformWithState needs the package protobuf; run: pip install"):
        pipelines.run(ORDERS.format(orders=cluster.topic()) + step + TABLE)


def test_a_step_with_invalid_sql_is_named(pipelines: Pipelines, cluster: Cluster) -> None:
    topic = cluster.topic()
    step = '[step.wrong]\nsql = "SELECT cty FROM orders"\n'

    with pytest.raises(ConfigError, match=r"\[step.wrong\]: there is no column cty; the nearest are .*city"):
        pipelines.run(ORDERS.format(orders=topic) + step + TABLE)


def test_a_missing_topic_is_named(pipelines: Pipelines, cluster: Cluster) -> None:
    topic = cluster.topic()
    with pytest.raises(ConfigError, match=rf"\[source.orders\] topics: there is no topic {topic}s at .*did you mean"):
        pipelines.run(textwrap.dedent(ORDERS.format(orders=f"{topic}s")) + TABLE)
