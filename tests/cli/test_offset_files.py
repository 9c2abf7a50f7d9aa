from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ottla.cli.offsets.files import from_lines, to_lines
from ottla.core.errors import ConfigError
from ottla.core.ids import TopicPartition

PLACES = st.builds(TopicPartition, st.from_regex(r"[A-Za-z0-9._-]{1,20}", fullmatch=True), st.integers(0, 10_000))


@given(st.dictionaries(PLACES, st.integers(0, 2**63 - 1), min_size=1))
def test_written_offsets_are_read_back(offsets: dict[TopicPartition, int]) -> None:
    assert from_lines(to_lines(offsets).splitlines(), "f") == offsets


def test_lines_are_in_order_and_as_kafka_writes_them() -> None:
    offsets = {TopicPartition("b", 0): 1, TopicPartition("a", 10): 2, TopicPartition("a", 9): 3}
    assert to_lines(offsets) == "a,9,3\na,10,2\nb,0,1\n"


@pytest.mark.parametrize(
    ("lines", "problem"),
    [
        (["a,0"], "f, line 1: expected topic,partition,offset such as orders,0,42, got 'a,0'"),
        (["a,0,1", "", "a,x,1"], "f, line 3: expected topic,partition,offset such as orders,0,42, got 'a,x,1'"),
        (["a,0,-1"], "f, line 1: expected topic,partition,offset such as orders,0,42, got 'a,0,-1'"),
        (["a,0,1", "a,0,2"], "f, line 2: a-0 is there twice"),
        ([], "f has no offsets; expected lines such as orders,0,42"),
    ],
)
def test_an_invalid_line_is_reported_with_its_number(lines: list[str], problem: str) -> None:
    with pytest.raises(ConfigError) as refused:
        from_lines(lines, "f")
    assert str(refused.value) == problem
