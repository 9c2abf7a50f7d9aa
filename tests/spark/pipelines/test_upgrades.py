"""A changed file with an existing checkpoint: allowed where the state still fits, refused with the reason where not."""

from collections.abc import Callable
from typing import Any

import pytest
from tests.spark.conftest import Cluster
from tests.spark.pipelines.conftest import Pipelines

from ottla.core.errors import ConfigError
from ottla.spark.pipelines.upgrades import refuse_mismatch, with_known_state

pytestmark = pytest.mark.timeout(300)

FILE = """
[source.orders]
topics = "{topic}"
schema = "id bigint, city string, price double, at timestamp"
event_time = "at"
watermark = "1 minute"
dead_letters = "none"
[step.totals]
sql = '''
SELECT window.start AS minute, city, sum(price) AS total
FROM orders WHERE price > 0 GROUP BY window(at, '1 minute'), city
'''
[step.shown]
sql = "SELECT minute, total FROM totals"
[step.once]
deduplicate = {{from = "orders", keys = "id"}}
[sink.table]
kind = "parquet"
path = "table"
from = "shown"
[sink.once]
kind = "parquet"
path = "once"
"""
REFUSED = {
    "another window": (
        "window(at, '1 minute')",
        "window(at, '2 minutes')",
        "state of Aggregate was made with other keys",
    ),
    "another function": ("sum(price)", "avg(price)", "state of Aggregate was made with other keys or functions"),
    "other keys of rows": (
        'keys = "id"',
        'keys = "city"',
        "state of DeduplicateWithinWatermark was made with other keys",
    ),
    "another place": ('path = "table"', 'path = "other"', "the place changed from table to other"),
    "another kind": (
        'kind = "parquet"\npath = "table"',
        'kind = "delta"\npath = "table"',
        "kind of sink changed from parquet",
    ),
    "no state any more": ('from = "shown"', 'from = "orders"', "stateful steps were removed"),
    "more sources": ("[step.totals]", '[source.more]\ntopics = "{topic}"\nschema = "a int"\n[step.totals]', "sources"),
}
ALLOWED = {
    "another filter": ("price > 0", "price > 1"),
    "another step after it": ("SELECT minute, total", "SELECT minute, total * 2 AS total, city"),
    "one more field": ("price double", "price double, note string"),
    "another delay": ('watermark = "1 minute"', 'watermark = "2 minutes"'),
    "another limit": ('watermark = "1 minute"', 'watermark = "1 minute"\nmax_per_batch = 10'),
}

FINGERPRINT: dict[str, Any] = {
    "sources": ["orders", "payments"],
    "kind": "parquet",
    "place": "table",
    "partition_by": [],
    "key": [],
    "mode": "append",
    "stateful": ["Join Inner, (id = order_id)"],
}
REFUSED_BY_RULE: dict[str, tuple[dict[str, Any], str]] = {
    "another join": ({"stateful": ["Join Inner, (id = customer_id)"]}, "state of Join was made with other keys"),
    "new state": (
        {"stateful": ["Join Inner, (id = order_id)", "Aggregate [city]"]},
        "the stateful steps changed from Join to",
    ),
    "fewer sources": ({"sources": ["orders"]}, "made with the sources orders, payments in this order"),
    "sources in another order": ({"sources": ["payments", "orders"]}, "Spark keeps their offsets by position"),
    "another partitioning": ({"partition_by": ["city"]}, "the partitioning changed from none to city"),
    "another key": ({"key": ["id"]}, "the key changed from none to id"),
}


@pytest.mark.parametrize("change", REFUSED_BY_RULE)
def test_an_incompatible_checkpoint_is_refused_with_the_reason(change: str) -> None:
    changed, reason = REFUSED_BY_RULE[change]
    refuse_mismatch("out", FINGERPRINT, FINGERPRINT)
    with pytest.raises(ConfigError, match=reason):
        refuse_mismatch("out", FINGERPRINT, {**FINGERPRINT, **changed})


def test_state_that_a_run_does_not_see_is_neither_compared_nor_forgotten() -> None:
    unseen = {**FINGERPRINT, "mode": "", "stateful": None}
    refuse_mismatch("out", FINGERPRINT, unseen)
    refuse_mismatch("out", unseen, FINGERPRINT)
    assert with_known_state(FINGERPRINT, unseen) == FINGERPRINT
    assert with_known_state(None, unseen) == unseen
    assert with_known_state(unseen, FINGERPRINT) == FINGERPRINT
    with pytest.raises(ConfigError, match="the place changed"):
        refuse_mismatch("out", FINGERPRINT, {**unseen, "place": "elsewhere"})


def test_the_first_state_of_a_query_that_had_none_is_refused() -> None:
    with pytest.raises(ConfigError, match="stateful steps were added"):
        refuse_mismatch("out", {**FINGERPRINT, "mode": "", "stateful": []}, FINGERPRINT)


def test_incompatible_state_is_refused_and_compatible_state_continues(
    pipelines: Pipelines, cluster: Cluster, send: Callable[..., None]
) -> None:
    from ottla.spark.pipelines.queries import check_upgrade, planned_queries
    from ottla.spark.pipelines.sessions import pipeline_session
    from ottla.spark.pipelines.state_folder import StateFolder

    topic = cluster.topic()
    send(topic, [{"id": 1, "city": "Prag", "price": 1.5, "at": "2026-01-01T00:00:00Z"}])
    pipelines.run(FILE.format(topic=topic))

    def judge(before: str, after: str) -> None:
        assert before in FILE
        changed = pipelines.load(FILE.replace(before, after).format(topic=topic))
        session = pipeline_session(changed, "local[2,3]")
        check_upgrade(changed, planned_queries(session, changed), StateFolder(changed.state))

    for change, (before, after, reason) in REFUSED.items():
        with pytest.raises(ConfigError, match=reason) as refused:
            judge(before, after)
        assert "the checkpoint is incompatible" in str(refused.value), change
    for before, after in ALLOWED.values():
        judge(before, after)

    # And it continues.
    send(topic, [{"id": 2, "city": "Prag", "price": 2.5, "at": "2026-01-01T00:09:00Z"}])
    changed = FILE.replace("price > 0", "price > 1").replace('watermark = "1 minute"', 'watermark = "2 minutes"')
    changed = changed.replace("SELECT minute, total", "SELECT minute, total, city")
    pipelines.run(changed.replace("price double", "price double, note string").format(topic=topic))
    assert [(row.total, row.city) for row in pipelines.rows()] == [(1.5, "Prag")]
    with pytest.raises(ConfigError, match="state of Aggregate was made with other keys"):
        pipelines.run(FILE.replace("sum(price)", "max(price)").format(topic=topic))
