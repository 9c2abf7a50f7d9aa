from __future__ import annotations

import crc32c as another
from hypothesis import given
from hypothesis import strategies as st

from ottla.records.checksum import crc32c


def test_the_check_value_of_the_castagnoli_polynomial() -> None:
    assert crc32c(b"123456789") == 0xE3069283


@given(data=st.binary(max_size=5000))
def test_another_library_computes_the_same_checksum(data: bytes) -> None:
    assert crc32c(data) == crc32c(memoryview(data)) == crc32c(bytearray(data)) == another.crc32c(data)
