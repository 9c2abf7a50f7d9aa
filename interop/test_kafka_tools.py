"""Kafka's own command-line tools against a running Ottla: what they print, to the last offset."""

import json
import re
from collections.abc import Callable
from pathlib import Path

import pytest

from interop.kafka_artifacts import KafkaArtifacts
from interop.kafka_tools import run_tool
from interop.ottla_server import OttlaServer
from ottla.records.compression import Compression

TOOLS = "org.apache.kafka.tools"
TOPICS = f"{TOOLS}.TopicCommand"
GROUPS = f"{TOOLS}.consumer.group.ConsumerGroupCommand"
GET_OFFSETS = f"{TOOLS}.GetOffsetShell"
CONFIGS = "kafka.admin.ConfigCommand"
LINES = [f"key-{n}:value {n} äöü" for n in range(40)]

# What every client, the producers' defaults and the admin basics need: steps 1 to 3 of the table that we serve.
NEEDED = {*range(4), *range(8, 17), *range(18, 24), 32, 33, 37, 42, 44, 47, 60, 74, 75}

Tool = Callable[..., list[str]]


@pytest.fixture(scope="module")
def tool(kafka: KafkaArtifacts, ottla: OttlaServer) -> Tool:
    """Runs one against Ottla and returns the lines that it printed; one that fails fails the test."""

    def run(main_class: str, *arguments: str, given: str = "") -> list[str]:
        done = run_tool(kafka, main_class, "--bootstrap-server", ottla.bootstrap, *arguments, given=given)
        assert done.exit_code == 0, done
        assert "ERROR" not in done.stderr
        return [line for line in done.stdout.splitlines() if line]

    return run


def create(tool: Tool, topic: str, partitions: int, *options: str) -> None:
    arguments = ("--create", "--topic", topic, "--partitions", str(partitions), *options)
    assert tool(TOPICS, *arguments) == [f"Created topic {topic}."]


def test_kafkas_tools_support_the_served_versions(tool: Tool) -> None:
    told = "\n".join(tool(f"{TOOLS}.BrokerApiVersionsCommand"))
    usable = {int(key) for key in re.findall(r"\((\d+)\): [\d to]+ \[usable: \d+\]", told)}
    unusable = set(re.findall(r"\w+\(\d+\): (?!UNSUPPORTED).*usable: (?!\d).*", told))

    assert (NEEDED - usable, unusable) == (set(), set())


def test_kafka_topics_creates_grows_describes_and_deletes_a_topic(tool: Tool) -> None:
    create(tool, "tool-topic", 2, "--config", "retention.ms=86400000", "--config", "cleanup.policy=compact")
    assert tool(TOPICS, "--alter", "--topic", "tool-topic", "--partitions", "3") == []

    summary, *partitions = tool(TOPICS, "--describe", "--topic", "tool-topic")
    facts = dict(fact.split(": ", 1) for fact in summary.split("\t"))
    assert (facts["Topic"], facts["PartitionCount"], facts["ReplicationFactor"]) == ("tool-topic", "3", "1")
    assert sorted(facts["Configs"].split(",")) == ["cleanup.policy=compact", "retention.ms=86400000"]
    on = "Leader: 0\tReplicas: 0\tIsr: 0\tElr: \tLastKnownElr: "
    assert partitions == [f"\tTopic: tool-topic\tPartition: {number}\t{on}" for number in range(3)]

    tool(TOPICS, "--delete", "--topic", "tool-topic")
    assert "tool-topic" not in tool(TOPICS, "--list")


def test_the_console_clients_and_kafka_consumer_groups(tool: Tool, ottla: OttlaServer) -> None:
    topic, group = "tool-console", "tool-console-group"
    reading = ("--reader-property", "parse.key=true", "--reader-property", "key.separator=:")
    given = "".join(f"{line}\n" for line in LINES)
    tool(f"{TOOLS}.ConsoleProducer", "--topic", topic, "--compression-codec", "zstd", *reading, given=given)
    assert {batch.compression for batch in ottla.batches(topic, 0)} == {Compression.ZSTD}

    def consume(*options: str) -> list[str]:
        printing = [f"print.{what}=true" for what in ("offset", "key")] + ["key.separator=:"]
        shown = [part for what in printing for part in ("--formatter-property", what)]
        limits = ("--timeout-ms", "30000")
        return tool(f"{TOOLS}.consumer.ConsoleConsumer", "--topic", topic, "--group", group, *limits, *shown, *options)

    def position() -> list[str]:
        [row] = [line for line in tool(GROUPS, "--describe", "--group", group) if line.startswith(group)]
        return row.split()

    assert consume("--from-beginning", "--max-messages", "40") == [f"Offset:{n}:{LINES[n]}" for n in range(40)]
    assert position() == [group, topic, "0", "40", "40", "0", "-", "-", "-"]

    reset = ("--reset-offsets", "--group", group, "--topic", topic, "--to-offset", "37", "--execute")
    assert [line.split() for line in tool(GROUPS, *reset)][1:] == [[group, topic, "0", "37"]]
    assert position() == [group, topic, "0", "37", "40", "3", "-", "-", "-"]
    assert consume("--max-messages", "3") == [f"Offset:{n}:{LINES[n]}" for n in (37, 38, 39)]

    told = f"Deletion of requested consumer groups ('{group}') was successful."
    assert tool(GROUPS, "--delete", "--group", group) == [told]
    assert group not in tool(GROUPS, "--list")


def test_kafka_configs_alters_and_describes(tool: Tool) -> None:
    create(tool, "tool-configs", 1)
    of = ("--entity-type", "topics", "--entity-name", "tool-configs")
    done = ["Completed updating config for topic tool-configs."]
    assert tool(CONFIGS, "--alter", *of, "--add-config", "max.message.bytes=2000,retention.ms=5000") == done
    assert tool(CONFIGS, "--alter", *of, "--delete-config", "retention.ms") == done

    default = "DEFAULT_CONFIG:message.max.bytes=1048588"
    assert tool(CONFIGS, "--describe", *of) == [
        "Dynamic configs for topic tool-configs are:",
        f"  max.message.bytes=2000 sensitive=false synonyms={{DYNAMIC_TOPIC_CONFIG:max.message.bytes=2000, {default}}}",
    ]


def test_kafka_configs_shows_a_group_that_has_configs_before_it_exists(tool: Tool) -> None:
    of = ("--entity-type", "groups", "--entity-name", "not-yet")
    done = ["Completed updating config for group not-yet."]
    assert tool(CONFIGS, "--alter", *of, "--add-config", "share.auto.offset.reset=earliest") == done

    told = tool(CONFIGS, "--describe", "--entity-type", "groups")
    assert "Dynamic configs for group not-yet are:" in told

    assert tool(CONFIGS, "--alter", *of, "--delete-config", "share.auto.offset.reset") == done


def test_kafka_configs_sets_a_broker_config_that_only_a_plug_in_would_know(tool: Tool) -> None:
    of = ("--entity-type", "brokers", "--entity-name", "0")
    done = ["Completed updating config for broker 0."]
    assert tool(CONFIGS, "--alter", *of, "--add-config", "my.plugin.level=5") == done
    [_, shown] = tool(CONFIGS, "--describe", *of)
    assert shown == "  my.plugin.level=null sensitive=true synonyms={DYNAMIC_BROKER_CONFIG:my.plugin.level=null}"
    assert tool(CONFIGS, "--alter", *of, "--delete-config", "my.plugin.level") == done


def test_offsets_of_a_performance_test_before_and_after_deleting_records(
    tool: Tool, ottla: OttlaServer, tmp_path: Path
) -> None:
    topic = "tool-offsets"
    size = ("--num-records", "20000", "--record-size", "100", "--throughput", "-1")
    told = tool(f"{TOOLS}.ProducerPerformance", "--topic", topic, *size)
    assert told[-1].startswith("20000 records sent, ")
    assert sum(batch.record_count for batch in ottla.batches(topic, 0)) == 20_000
    assert tool(GET_OFFSETS, "--topic", topic) == [f"{topic}:0:20000"]

    wanted = tmp_path / "delete.json"
    wanted.write_text(json.dumps({"partitions": [{"topic": topic, "partition": 0, "offset": 12_345}], "version": 1}))
    deleted = tool(f"{TOOLS}.DeleteRecordsCommand", "--offset-json-file", str(wanted))
    assert deleted[-1] == f"partition: {topic}-0\tlow_watermark: 12345"
    assert tool(GET_OFFSETS, "--topic", topic, "--time", "earliest") == [f"{topic}:0:12345"]
