"""The demonstration: a broker, a shop that is open for a while, three pipelines, and queries of their tables."""

from __future__ import annotations

import shutil
import threading
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

from examples.shop.chart import bars, share
from examples.shop.shop import Shop
from ottla import Admin, Producer
from ottla.broker.embedded import EmbeddedBroker
from ottla.client.blocking.background import Background
from ottla.spark.archive.archiver import Archiver, Rules
from ottla.spark.archive.places import place_of
from ottla.spark.pipelines.loading import load_pipeline
from ottla.spark.pipelines.running import RunOptions, run_pipeline
from ottla.spark.pipelines.sessions import pipeline_session

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from concurrent.futures import Future

    from pyspark.sql import SparkSession

    from examples.shop.shop import Event
    from ottla.spark.pipelines.definition import Pipeline

_HERE: Final = Path(__file__).parent
_TOPICS: Final = ("orders", "payments", "clicks", "paid-orders")
_PIPELINES: Final = ("per_minute", "paid_orders")
_ARCHIVED: Final = "clicks"


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    folder: Path
    minutes: int
    orders_per_minute: int
    minute_s: float = 1.0
    archive_every_s: float = 5.0
    say: Callable[[str], None] = lambda line: print(line, flush=True)  # noqa: T201 - it is a program for a terminal


@dataclass(slots=True)
class Outcome:
    """Numbers of sent events and of rows found."""

    sent: Counter[str]
    late_orders: int
    orders_in_table: int = 0
    paid: int = 0
    archived_clicks: int = 0
    all_clicks: int = 0


class Demo:
    def __init__(self, plan: Plan) -> None:
        self._plan = plan
        self._is_closed = threading.Event()
        self._has_begun = {name: threading.Event() for name in _PIPELINES}
        self._began_s = time.monotonic()
        self._shop = Shop(orders_per_minute=plan.orders_per_minute)
        self._outcome = Outcome(Counter(), 0)

    def run(self) -> Outcome:
        folder = self._plan.folder
        folder.mkdir(parents=True)
        for name in (*(f"{each}.toml" for each in _PIPELINES), "items.csv"):
            shutil.copy(_HERE / name, folder)
        with ExitStack() as running:
            broker = running.enter_context(EmbeddedBroker(folder / "data"))
            servers = broker.bootstrap_servers
            self._say(f"the broker is ready at {servers}; Spark takes some seconds to start")
            with Admin(servers) as admin:
                for topic in _TOPICS:
                    admin.create_topic(topic, partitions=2)
            workers = running.enter_context(ThreadPoolExecutor(4))
            running.callback(self._is_closed.set)
            sessions = {name: pipeline_session(self._pipeline(name, servers), "local[*]") for name in _PIPELINES}
            self._stream(servers, sessions, workers)
            self._ask(servers, next(iter(sessions.values())))
        self._say(f"all of it is in {folder}: data/, tables/, archive/, and the pipelines' own files")
        return self._outcome

    def _stream(self, servers: str, sessions: dict[str, SparkSession], workers: ThreadPoolExecutor) -> None:
        """Run everything while the shop is open; then let the pipelines continue to the end."""
        others: list[Future[object]] = [workers.submit(self._archive, servers)]
        for name, spark in sessions.items():
            others.append(workers.submit(self._run_pipeline, name, servers, spark, available_now=False))
            # One after the other: planning one takes what Spark prints, which is for all threads the same.
            while not self._has_begun[name].wait(0.1) and not others[-1].done():
                pass
        self._open_shop(servers, others)
        self._is_closed.set()
        for each in others:
            each.result()
        self._say("the shop is closed; the pipelines take what is left")
        self._close_the_day(servers)
        for name, spark in sessions.items():
            self._run_pipeline(name, servers, spark, available_now=True)

    def _open_shop(self, servers: str, others: list[Future[object]]) -> None:
        with Producer(servers) as producer:
            for minute in range(self._plan.minutes):
                self._send(producer, self._shop.minute(minute))
                if minute % 10 == 0:
                    counts = ", ".join(f"{count:,} {topic}" for topic, count in sorted(self._outcome.sent.items()))
                    self._say(f"{'shop':>12}  minute {minute}: {counts}")
                if any(each.done() for each in others):
                    return  # one has failed, and says so when it is asked
                self._is_closed.wait(self._plan.minute_s)

    def _close_the_day(self, servers: str) -> None:
        """Send what moves the watermark past the last minutes, once no query runs.

        Spark writes windows that are over in the micro-batch after the one that moved the watermark. A query that is
        stopped between the two does not write them when it is started again, unless there are new records.
        """
        with Producer(servers) as producer:
            self._send(producer, self._shop.after_hours(self._plan.minutes))

    def _send(self, producer: Producer[bytes, bytes], events: Iterable[Event]) -> None:
        for event in events:
            producer.send(event.topic, event.value, key=event.key)
            self._outcome.sent[event.topic] += 1
            self._outcome.late_orders += event.is_late and event.topic == "orders"
        producer.flush()

    def _run_pipeline(self, name: str, servers: str, spark: SparkSession, *, available_now: bool) -> None:
        # Spark looks for Python's sinks in the session that is a thread's active one.
        spark._jvm.SparkSession.setActiveSession(spark._jsparkSession)  # noqa: SLF001
        run_pipeline(
            spark,
            self._pipeline(name, servers),
            RunOptions(
                available_now=available_now,
                say=lambda line: self._say(f"{name:>12}  {line}"),
                is_over=lambda: self._is_over(name) and not available_now,
            ),
        )

    def _is_over(self, name: str) -> bool:
        """Asked from when a pipeline's queries have begun."""
        self._has_begun[name].set()
        return self._is_closed.is_set()

    def _pipeline(self, name: str, servers: str) -> Pipeline:
        return load_pipeline(self._plan.folder / f"{name}.toml", broker=servers)

    def _archive(self, servers: str) -> None:
        place = place_of(str(self._plan.folder / "archive"), _ARCHIVED)
        link = Background("demo archive", servers, {})
        try:
            with place.held() as hold:
                archiver = Archiver(link, _ARCHIVED, place, hold, Rules(trims_older_than_ms=0))
                while not self._is_closed.wait(self._plan.archive_every_s):
                    done = archiver.round()
                    if done.records:
                        self._say(f"{'archive':>12}  {_ARCHIVED}: {done.records:,} records in {done.stretches} files")
                # What comes last is in both, until the topic is trimmed again.
                Archiver(link, _ARCHIVED, place, hold, Rules(merges_all=True)).round()
        finally:
            link.close()

    def _ask(self, servers: str, spark: SparkSession) -> None:
        """Of the tables, the topic, and the archive with the live log as one."""
        from pyspark.sql import functions as F  # noqa: N812 - the usual name

        outcome, say = self._outcome, self._plan.say
        minutes = sorted(spark.read.parquet(str(self._plan.folder / "tables" / "revenue")).collect())
        outcome.orders_in_table = sum(row.orders for row in minutes)
        say("\nRevenue per minute, late orders included:\n")
        for line in bars([row.revenue for row in minutes], [f"{row.minute:%H:%M}" for row in minutes]):
            say(line)
        source = spark.read.format("ottla").option("kafka.bootstrap.servers", servers)
        paid = (
            source.option("subscribe", "paid-orders")
            .load()
            .selectExpr(
                "from_json(CAST(value AS string), 'id bigint, kind string, method string, price double') AS paid"
            )
            .select("paid.*")
        )
        rows = paid.groupBy("kind", "method").agg(F.count("id").alias("orders"), F.sum("price").alias("price"))
        found = sorted(rows.collect())
        outcome.paid = sum(row.orders for row in found)
        say(f"\n{outcome.paid:,} paid orders, by kind and method:\n")
        for row in found:
            say(share(f"{row.kind} {row.method}", row.price, max(each.price for each in found)))
        archive = self._plan.folder / "archive"
        live = source.option("subscribe", _ARCHIVED).load().count()
        outcome.archived_clicks = spark.read.parquet(str(archive / _ARCHIVED)).count()
        outcome.all_clicks = source.option("subscribe", _ARCHIVED).option("archive", str(archive)).load().count()
        say(
            f"\n{outcome.archived_clicks:,} clicks in the archive, {live:,} in the topic, and as one frame, each once: "
            f"{outcome.all_clicks:,}\n"
        )

    def _say(self, line: str) -> None:
        self._plan.say(f"{time.monotonic() - self._began_s:6.1f} s  {line}")
