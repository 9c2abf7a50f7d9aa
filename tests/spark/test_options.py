"""The connector's options: meaning and errors."""

import pytest

from ottla.core.errors import ConfigError
from ottla.core.ids import TopicPartition
from ottla.spark.kafka_settings import client_options, consumer_options
from ottla.spark.reader.offsets import EARLIEST, LATEST
from ottla.spark.reader.options import SourceOptions, parse_source

SERVERS = {"kafka.bootstrap.servers": "one:9092"}


def batch(**options: str) -> SourceOptions:
    return parse_source({**SERVERS, "subscribe": "a", **options}, is_stream=False)


def stream(**options: str) -> SourceOptions:
    return parse_source({**SERVERS, "subscribe": "a", **options}, is_stream=True)


def test_a_batch_begins_at_the_beginning_and_a_stream_at_the_end() -> None:
    assert batch().starting.everywhere == EARLIEST
    assert batch().ending.everywhere == LATEST
    assert stream().starting.everywhere == LATEST
    assert batch().fail_on_data_loss


def test_the_case_of_names_does_not_matter() -> None:
    assert batch(STARTINGTIMESTAMP="5", MinPartitions="7", includeheaders="TRUE").min_partitions == 7


def test_a_time_for_all_wins_over_times_by_partition_and_those_over_offsets() -> None:
    given = {"startingOffsets": "earliest", "startingOffsetsByTimestamp": '{"a":{"0":3}}'}

    assert batch(**given).starting.by_partition == {TopicPartition("a", 0): 3}
    assert batch(**given, startingTimestamp="9").starting.everywhere == 9


def test_topics_are_chosen_by_name_pattern_or_partition() -> None:
    assert batch().selection.topics == ("a",)
    assert parse_source({**SERVERS, "subscribe": "b, a"}, is_stream=False).selection.topics == ("a", "b")
    by_pattern = parse_source({**SERVERS, "subscribePattern": "shop-.*"}, is_stream=True).selection
    assert by_pattern.matches("shop-1")
    assert not by_pattern.matches("my-shop-1")
    assigned = parse_source({**SERVERS, "assign": '{"a":[1]}'}, is_stream=True).selection
    assert assigned.takes(TopicPartition("a", 1))
    assert not assigned.takes(TopicPartition("a", 0))


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ({"subscribePattern": "x"}, "exactly one of subscribe, subscribePattern and assign"),
        ({"subscribe": ""}, "exactly one of subscribe, subscribePattern and assign must be set, got none"),
        ({"startingOffsets": "latest"}, "startingOffsets cannot be latest in a batch read"),
        ({"startingOffsets": '{"a":{"0":-1}}'}, "startingOffsets cannot be latest in a batch read"),
        ({"endingOffsets": "earliest"}, "endingOffsets cannot be earliest"),
        ({"minPartitions": "0"}, "minPartitions must be a whole number of at least 1, got '0'"),
        ({"failOnDataLoss": "maybe"}, "failOnDataLoss must be true or false, got 'maybe'"),
        ({"maxTriggerDelay": "soon"}, "maxTriggerDelay must be a duration such as 15m"),
        ({"kafka.bootstrap.servers": ""}, "kafka.bootstrap.servers must be set"),
        ({"startingOffsetsByTimestampStrategy": "guess"}, "must be error or latest, got 'guess'"),
    ],
)
def test_an_invalid_value_is_refused_with_the_option_named(options: dict[str, str], reason: str) -> None:
    with pytest.raises(ConfigError, match=reason):
        batch(**options)


def test_a_stream_has_no_end_and_no_folder() -> None:
    with pytest.raises(ConfigError, match="endingOffsets is only for batch reads"):
        stream(endingOffsets="latest")
    with pytest.raises(ConfigError, match="path is only for batch reads"):
        stream(path="/somewhere")


def test_an_invalid_pattern_is_refused() -> None:
    with pytest.raises(ConfigError, match="not a valid regular expression"):
        parse_source({**SERVERS, "subscribePattern": "("}, is_stream=False)


@pytest.mark.parametrize(
    ("text", "expected"), [("15m", 900_000), ("30s", 30_000), ("250 ms", 250), ("2 hours", 7_200_000)]
)
def test_delays_are_given_with_their_unit(text: str, expected: int) -> None:
    assert stream(maxTriggerDelay=text).max_trigger_delay_ms == expected


def test_security_options_are_those_of_the_connector() -> None:
    jaas = 'org.apache.kafka.common.security.scram.ScramLoginModule required username="ann" password="s\\"ecret";'
    kafka = {"security.protocol": "SASL_PLAINTEXT", "sasl.mechanism": "SCRAM-SHA-512", "sasl.jaas.config": jaas}

    security = client_options(kafka)["security"]

    assert security is not None
    assert (security.mechanism, security.username, security.password) == ("SCRAM-SHA-512", "ann", 's"ecret')
    assert client_options({})["security"] is None


@pytest.mark.parametrize(
    ("kafka", "reason"),
    [
        ({"security.protocol": "SASL_SSL"}, "needs kafka.sasl.mechanism"),
        ({"security.protocol": "SASL_SSL", "sasl.mechanism": "PLAIN"}, "SASL needs kafka.sasl.jaas.config"),
        ({"security.protocol": "TLS"}, "kafka.security.protocol must be one of"),
        (
            {"security.protocol": "SSL", "ssl.truststore.location": "/t"},
            "kafka.ssl.truststore.type must be PEM, got JKS",
        ),
        ({"auto.offset.reset": "latest"}, "kafka.auto.offset.reset cannot be set: set startingOffsets instead"),
    ],
)
def test_invalid_security_options_are_refused(kafka: dict[str, str], reason: str) -> None:
    with pytest.raises(ConfigError, match=reason):
        client_options(kafka)


def test_client_settings_are_passed_on() -> None:
    options = client_options({"request.timeout.ms": "5000", "client.id": "etl"})

    assert (options["request_timeout_ms"], options["client_id"]) == (5000, "etl")
    assert consumer_options({"isolation.level": "read_committed"})["isolation_level"] == "read_committed"
    with pytest.raises(ConfigError, match=r"kafka\.isolation\.level must be"):
        consumer_options({"isolation.level": "serializable"})
