import pytest

from ottla.groups.config import GroupConfig


def test_the_defaults_are_kafkas_except_the_initial_rebalance_delay() -> None:
    config = GroupConfig()
    assert (config.min_session_timeout_ms, config.max_session_timeout_ms) == (6000, 1_800_000)
    assert config.initial_rebalance_delay_ms == 0
    assert config.offsets_retention_ms == 7 * 24 * 3_600_000
    assert config.offset_metadata_max_bytes == 4096


@pytest.mark.parametrize(
    "settings",
    [
        {"min_session_timeout_ms": 0},
        {"min_session_timeout_ms": 2_000_000},
        {"max_session_timeout_ms": 5999},
        {"initial_rebalance_delay_ms": -1},
        {"max_size": 0},
        {"new_member_join_timeout_ms": 0},
        {"offsets_retention_minutes": 0},
        {"offsets_retention_check_interval_ms": 0},
        {"offset_metadata_max_bytes": -1},
    ],
)
def test_an_invalid_setting_is_refused_by_name(settings: dict[str, int]) -> None:
    [name] = settings
    with pytest.raises(ValueError, match=name.removeprefix("min_").removeprefix("max_")):
        GroupConfig(**settings)
