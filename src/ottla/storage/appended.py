"""The result of an append."""

import msgspec


class Appended(msgspec.Struct, frozen=True, gc=False):
    """The offsets of an appended batch. A duplicate has the offsets of the original."""

    base_offset: int
    last_offset: int
    log_append_time: int
    """-1 unless the topic's timestamps are set by the broker."""
    is_duplicate: bool
