"""The records of a topic that its table does not have yet, as rows of the table."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Final

from ottla.core.errors import OttlaError
from ottla.spark.link import link_to
from ottla.spark.reader.offsets import EARLIEST, to_tree
from ottla.spark.reader.options import Selection, kafka_settings
from ottla.spark.reader.topic_layout import Cluster

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ottla.core.ids import TopicPartition
    from ottla.lake.covered import Covered
    from ottla.spark.reader.offsets import Offsets
    from ottla.spark.reader.topic_layout import Partitions

_NO_ID: Final = bytes(16)


def reader_options(topic: str, servers: str, given: Mapping[str, str]) -> dict[str, str]:
    """For `format("ottla")`: committed records with headers, as `ottla lake` reads them."""
    return {
        "kafka.bootstrap.servers": servers,
        **{name: value for name, value in given.items() if name != "registry"},
        "subscribe": topic,
        "includeHeaders": "true",
        "kafka.isolation.level": "read_committed",
    }


def bounds(topic: str, covered: Covered, options: Mapping[str, str]) -> tuple[Offsets, Offsets]:
    """Where the table ends and where the topic ends now, by partition: the last stable offsets."""
    cluster = Cluster(link_to(kafka_settings(options)), is_committed_only=True)
    partitions = cluster.partitions(Selection(topics=(topic,)))
    check_topic(topic, covered, partitions)
    begin = begin_of(covered, partitions)
    new = [at for at, offset in begin.items() if offset == EARLIEST]
    return begin | cluster.earliest(new), check_end(begin, cluster.latest(partitions))


def begin_of(covered: Covered, partitions: Partitions) -> Offsets:
    """The first offset to read; a partition that the table does not know is read from its beginning."""
    return {at: covered.partitions.get(at.partition, EARLIEST) for at in partitions}


def check_topic(topic: str, covered: Covered, partitions: Partitions) -> None:
    ids = {each for each in partitions.values() if each != _NO_ID}
    if covered.topic_id and ids and bytes.fromhex(covered.topic_id) not in ids:
        raise OttlaError(f"topic {topic} was re-created; its table has the records of the previous topic")
    if gone := sorted(covered.partitions.keys() - {at.partition for at in partitions}):
        raise OttlaError(f"the table of topic {topic} has partition {gone[0]}, which the topic does not have")


def check_end(begin: Offsets, end: Offsets) -> Offsets:
    for at, offset in begin.items():
        if end[at] < offset:
            raise OttlaError(
                f"{at} ends at offset {end[at]}, but its table has records up to {offset - 1}; was the log truncated?"
            )
    return end


def as_json(offsets: Mapping[TopicPartition, int]) -> str:
    return json.dumps(to_tree(offsets))
