"""The end of a partition's log, as its current leader reports it."""

from __future__ import annotations

from typing import Final

from confluent_kafka import Consumer, KafkaError, KafkaException, TopicPartition

from .processes import until

_ATTEMPT_S: Final = 30.0
# A new leader answers once its followers have caught up; until clients know it, they ask its predecessor.
_RETRIABLE: Final = (KafkaError.OFFSET_NOT_AVAILABLE, KafkaError.NOT_LEADER_FOR_PARTITION)


def end_of(consumer: Consumer, place: TopicPartition) -> int:
    """The high watermark; librdkafka does not retry this request."""
    ends: list[int] = []

    def is_answered() -> bool:
        try:
            ends.append(consumer.get_watermark_offsets(place, timeout=_ATTEMPT_S)[1])
        except KafkaException as refused:
            if refused.args[0].code() not in _RETRIABLE:
                raise
        return bool(ends)

    until(is_answered, f"the end of {place.topic}-{place.partition}")
    return ends[0]
