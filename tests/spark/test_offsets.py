"""Offsets in the connector's JSON, and starting offsets."""

import json

import pytest

from ottla.core.errors import ConfigError
from ottla.core.ids import TopicPartition
from ottla.spark.reader.offsets import EARLIEST, Bound, from_tree, parse_offsets, parse_partitions, to_tree

A0, A1, B0 = TopicPartition("a", 0), TopicPartition("a", 1), TopicPartition("b", 0)


def test_offsets_are_written_as_the_connector_writes_them_with_sorted_keys() -> None:
    tree = to_tree({B0: 7, TopicPartition("a", 10): 3, A1: 2, A0: 1})

    assert json.dumps(tree) == '{"a": {"0": 1, "1": 2, "10": 3}, "b": {"0": 7}}'
    assert from_tree(tree)[TopicPartition("a", 10)] == 3


def test_a_users_offsets_may_be_the_beginning_and_the_end() -> None:
    assert parse_offsets('{"a":{"0":23,"1":-2}}', "startingOffsets") == {A0: 23, A1: EARLIEST}


@pytest.mark.parametrize("text", ["earlyest", "[1]", '{"a":5}', '{"a":{"x":1}}', '{"a":{"0":"1"}}', '{"a":{"0":true}}'])
def test_invalid_offsets_are_refused_with_the_option_and_an_example(text: str) -> None:
    with pytest.raises(ConfigError, match=r'startingOffsets must be JSON like \{"orders"'):
        parse_offsets(text, "startingOffsets")


def test_partitions_are_given_by_topic() -> None:
    assert parse_partitions('{"b":[0],"a":[1,0]}', "assign") == (A0, A1, B0)
    with pytest.raises(ConfigError, match="assign must be JSON"):
        parse_partitions('{"a":"x"}', "assign")


def test_a_bound_for_all_partitions_applies_to_each() -> None:
    assert Bound("startingOffsets", everywhere=EARLIEST).wanted({A0, A1}) == {A0: EARLIEST, A1: EARLIEST}


def test_a_bound_by_partition_must_name_those_that_are_read_and_no_others() -> None:
    bound = Bound("startingOffsets", by_partition={A0: 5})

    assert bound.wanted({A0}) == {A0: 5}
    with pytest.raises(ConfigError, match="missing: a-1"):
        bound.wanted({A0, A1})
    with pytest.raises(ConfigError, match="names partitions that do not exist or are not read: a-0"):
        Bound("startingOffsets", by_partition={A0: 5, B0: 1}).wanted({B0})
