from __future__ import annotations

import click
import pytest

from ottla.cli.arguments import ByteRate, config_pairs, existing, pairs, topics_and_partitions
from ottla.core.errors import ConfigError
from ottla.core.ids import TopicPartition


def test_the_value_of_a_pair_may_contain_equals_signs() -> None:
    assert pairs("--set", ["a=1", "b=x=y", "c="]) == {"a": "1", "b": "x=y", "c": ""}


@pytest.mark.parametrize("text", ["a", "=1", ""])
def test_a_pair_without_a_name_or_a_value_is_refused(text: str) -> None:
    with pytest.raises(ConfigError, match="--set: expected NAME=VALUE, got "):
        pairs("--set", [text])


def test_configs_of_sizes_and_durations_may_have_units() -> None:
    given = [
        "retention.ms=7d",
        "segment.bytes=10MiB",
        "retention.bytes=-1",
        "cleanup.policy=compact",
        "segment.ms=5000",
    ]
    assert config_pairs("--set", given) == {
        "retention.ms": "604800000",
        "segment.bytes": "10485760",
        "retention.bytes": "-1",
        "cleanup.policy": "compact",
        "segment.ms": "5000",
    }
    with pytest.raises(ConfigError, match=r"--set: retention.ms: expected a number of ms, or e.g. 30s, 12h or 7d, got"):
        config_pairs("--set", ["retention.ms=10MiB"])


def test_a_rate_may_have_a_unit() -> None:
    assert [ByteRate().convert(text, None, None) for text in ("1000000", "0.5", "10MiB", "0")] == [
        1e6,
        0.5,
        10 << 20,
        0,
    ]
    for wrong in ("fast", "-1", "5s"):
        with pytest.raises(click.BadParameter, match="invalid rate"):
            ByteRate().convert(wrong, None, None)


def test_partitions_are_grouped_by_topic_and_the_whole_topic_wins() -> None:
    given = ["a:2,0", "a:1", "b", "c:1", "c", "c:2"]
    assert topics_and_partitions("-t", given) == {"a": [0, 1, 2], "b": None, "c": None}


@pytest.mark.parametrize("text", ["", ":1", "a:", "a:x", "a:1,", "a:-1", "a:1:2"])
def test_anything_else_is_not_a_topic(text: str) -> None:
    with pytest.raises(ConfigError, match="-t: expected TOPIC or TOPIC:0,1,2, got "):
        topics_and_partitions("-t", [text])


def test_an_unknown_partition_is_refused_and_the_existing_ones_are_listed() -> None:
    assert existing({"a": None, "b": [1]}, {"a": [0], "b": [0, 1]}) == [TopicPartition("a", 0), TopicPartition("b", 1)]
    with pytest.raises(ConfigError, match="topic 'b' has no partition 2; it has 2: 0 to 1"):
        existing({"b": [2]}, {"b": [0, 1]})
    with pytest.raises(ConfigError, match="topic 'a' has no partition 5; it has only 0"):
        existing({"a": [5]}, {"a": [0]})
