"""What share groups write, read by Kafka's own DumpLogSegments."""

import json
import re
from pathlib import Path
from typing import Any

from tests.broker.making import create_topic, produce
from tests.broker.raw_client import RawClient
from tests.broker.sharing import ACCEPT, REJECT, RELEASE, ShareMember

import ottla
from interop.kafka_artifacts import KafkaArtifacts
from interop.kafka_tools import DUMP_LOG_SEGMENTS, run_tool

LOG = "00000000000000000000.log"


def test_kafka_reads_the_records_of_share_groups(kafka: KafkaArtifacts, tmp_path: Path) -> None:
    with ottla.Broker(tmp_path) as broker, RawClient(broker.bootstrap_servers) as client:
        member = ShareMember(client, "g", "t", create_topic(client, "t"))
        produce(client, "t", b"a", b"b", b"c")
        member.fetch()
        assert member.acknowledge(0, 2, ACCEPT, RELEASE, REJECT) == 0

    state = _decoded(kafka, tmp_path / "__share_group_state-0" / LOG, "--share-group-state-decoder")
    assert [kind for kind, _ in state] == ["0", "1"]
    assert [
        (one["firstOffset"], one["lastOffset"], one["deliveryState"], one["deliveryCount"])
        for one in state[1][1]["stateBatches"]
    ] == [(0, 0, 2, 1), (1, 1, 0, 1), (2, 2, 4, 1)]
    assert state[1][1]["startOffset"] == 1

    group = dict(_decoded(kafka, tmp_path / "__consumer_offsets-0" / LOG, "--offsets-decoder"))
    assert set(group) == {"10", "11", "12", "13", "14", "15"}
    assert group["10"]["subscribedTopicNames"] == ["t"]
    assert group["11"]["epoch"] == group["12"]["assignmentEpoch"] == group["14"]["memberEpoch"] == 1
    assert group["15"]["initializedTopics"][0]["partitions"] == [0]


def _decoded(kafka: KafkaArtifacts, file: Path, decoder: str) -> list[tuple[str, dict[str, Any]]]:
    """The type of each record's key, and its value."""
    run = run_tool(kafka, DUMP_LOG_SEGMENTS, decoder, "--files", str(file))
    assert run.exit_code == 0, run.stderr
    found = re.findall(r"key: (\{.*\}) payload: (\{.*\})", run.stdout)
    return [(json.loads(key)["type"], json.loads(value)["data"]) for key, value in found]
