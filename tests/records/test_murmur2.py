"""Keys are partitioned as by every other client."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from aiokafka.partitioner import DefaultPartitioner
from fuzz.forms import load_forms
from hypothesis import given
from hypothesis import strategies as st
from kafka.partitioner.default import murmur2 as kafka_python_murmur2

if TYPE_CHECKING:
    from fuzz.forms import Form

# Of Kafka's own UtilsTest, as unsigned numbers.
KNOWN = {
    b"21": -973932308,
    b"foobar": -790332482,
    b"a-little-bit-long-string": -985981536,
    b"a-little-bit-longer-string": -1486304829,
    b"lkjh234lh9fiuh90y23oiuhsafujhadof229phr9h19h89h8": -58897971,
    b"abc": 479470107,
}


@pytest.mark.parametrize("key", KNOWN, ids=bytes.decode)
def test_the_hash_is_that_of_kafkas_java_client(form: Form, key: bytes) -> None:
    assert form.murmur2.murmur2(key) == KNOWN[key] & 0xFFFFFFFF


@pytest.mark.parametrize("form", load_forms(), ids=lambda form: form.name)
@given(key=st.binary(max_size=70))
def test_the_hash_is_that_of_kafka_python(form: Form, key: bytes) -> None:
    assert form.murmur2.murmur2(key) == kafka_python_murmur2(key) & 0xFFFFFFFF


@pytest.mark.parametrize("form", load_forms(), ids=lambda form: form.name)
@given(key=st.binary(max_size=40), partitions=st.integers(1, 1000))
def test_the_partition_is_that_of_aiokafka(form: Form, key: bytes, partitions: int) -> None:
    every = list(range(partitions))

    assert form.murmur2.partition_of(key, partitions) == DefaultPartitioner()(key, every, every)


@pytest.mark.parametrize("partitions", [0, -1])
def test_zero_partitions_are_refused_for_a_key(form: Form, partitions: int) -> None:
    with pytest.raises(ValueError, match=f"the number of partitions must be positive, got {partitions}"):
        form.murmur2.partition_of(b"key", partitions)
