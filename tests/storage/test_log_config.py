from __future__ import annotations

import pytest

from ottla.storage.config import LogConfig


def test_the_defaults_are_kafkas() -> None:
    config = LogConfig()

    assert config.segment_bytes == 1_073_741_824
    assert config.segment_index_bytes == 10_485_760
    assert config.index_interval_bytes == 4096
    assert config.segment_ms == config.retention_ms == 604_800_000
    assert config.retention_bytes == -1
    assert config.max_message_bytes == 1_048_588
    assert config.message_timestamp_before_max_ms == (1 << 63) - 1
    assert config.message_timestamp_after_max_ms == 3_600_000
    assert config.producer_id_expiration_ms == 86_400_000


@pytest.mark.parametrize(
    ("setting", "least"),
    [
        ("segment_bytes", 1024),
        ("segment_index_bytes", 1024),
        ("segment_ms", 1),
        ("producer_id_expiration_ms", 1),
        ("flush_interval_ms", 1),
        ("index_interval_bytes", 0),
        ("max_message_bytes", 0),
        ("message_timestamp_before_max_ms", 0),
        ("message_timestamp_after_max_ms", 0),
        ("retention_ms", -1),
        ("retention_bytes", -1),
    ],
)
def test_an_invalid_setting_is_refused_by_name(setting: str, least: int) -> None:
    LogConfig(**{setting: least})

    with pytest.raises(ValueError, match=f"{setting} must be at least {least}, got {least - 1}"):
        LogConfig(**{setting: least - 1})


def test_positions_in_a_segment_have_to_fit_into_kafkas_indexes() -> None:
    LogConfig(segment_bytes=(1 << 31) - 1)

    with pytest.raises(ValueError, match="segment_bytes must be below 2 GiB"):
        LogConfig(segment_bytes=1 << 31)
