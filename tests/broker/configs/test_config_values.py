from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ottla.broker.configs.definition import ConfigType, Definition, Value
from ottla.broker.configs.definitions import TOPIC_DEFINITIONS, broker_definitions
from ottla.broker.configs.rules import one_of
from ottla.broker.configs.values import find, normalised, parse, to_text
from ottla.core.errors import ErrorCode, InvalidConfig

MAX_INT, MAX_LONG = (1 << 31) - 1, (1 << 63) - 1
ARABIC_FIVE = "\u0665"

WRONG_FOR_ITS_TYPE = {
    ConfigType.BOOLEAN: ("", "yes", "1", "0", "truee", "on"),
    ConfigType.SHORT: ("", "x", "1.5", "1e3", "0x10", "1_000", ARABIC_FIVE, "32768", "-32769", "9" * 5000),
    ConfigType.INT: ("", "x", "1.5", "1e3", "0x10", "1_000", ARABIC_FIVE, "2147483648", "-2147483649", "9" * 5000),
    ConfigType.LONG: (
        "",
        "x",
        "1.5",
        "1e3",
        "0x10",
        "1_000",
        ARABIC_FIVE,
        str(MAX_LONG + 1),
        str(-MAX_LONG - 2),
        "true",
    ),
    ConfigType.DOUBLE: (
        "",
        "x",
        "NaN",
        "Infinity",
        "-inf",
        "1_0",
        "0x1p-1",
        "0.5d",
        ".",
        "1e",
        "1e999",
        "1" * 100_000 + "x",
    ),
    ConfigType.LIST: (",", "a,,b", "a,"),
}
BREAKS_ITS_RULE = {
    "cleanup.policy": ("zzz", "Delete", "delete,purge", "none"),
    "compression.gzip.level": ("0", "-2", "10"),
    "compression.lz4.level": ("0", "18"),
    "compression.type": ("", "none", "ZSTD", "brotli"),
    "compression.zstd.level": ("-131073", "23"),
    "confluent.key.subject.name.strategy": ("", "TopicNameStrategy", "com.example.Mine"),
    "confluent.value.subject.name.strategy": ("", "TopicNameStrategy", "com.example.Mine"),
    "delete.retention.ms": ("-1",),
    "encryption.key.version": ("-1",),
    "file.delete.delay.ms": ("-1",),
    "flush.messages": ("0", "-1"),
    "flush.ms": ("-1",),
    "follower.replication.throttled.replicas": ("a:b", "1", "1:2,*", "1:2:3", "-1:2"),
    "index.interval.bytes": ("-1",),
    "internal.segment.bytes": ("1023",),
    "leader.replication.throttled.replicas": ("all", "*,1:2", "1:"),
    "local.retention.bytes": ("-3",),
    "local.retention.ms": ("-3",),
    "max.compaction.lag.ms": ("0", "-1"),
    "max.message.bytes": ("-1",),
    "message.timestamp.after.max.ms": ("-1",),
    "message.timestamp.before.max.ms": ("-1",),
    "message.timestamp.type": ("", "createtime", "LogAppend"),
    "min.cleanable.dirty.ratio": ("-0.1", "1.1", "5"),
    "min.compaction.lag.ms": ("-1",),
    "min.insync.replicas": ("0", "-1"),
    "ottla.schema.validation.dead.letter.topic": ("a b", ".", "x" * 250),
    "ottla.table.columns": ("id", "id nosuchtype", "id int, ID int"),
    "ottla.table.commit.interval.ms": ("99", "-1"),
    "ottla.table.mode": ("", "merge"),
    "ottla.table.partition.by": ("days(at)", "bucket(id)", "day(at"),
    "ottla.table.values": ("", "avro", "JSON"),
    "remote.storage.enable": ("true",),
    "retention.ms": ("-2",),
    "segment.bytes": ("1048575", "0", "14"),
    "segment.index.bytes": ("3",),
    "segment.jitter.ms": ("-1",),
    "segment.ms": ("0", "-1"),
}
UNRULED = {
    "confluent.key.schema.validation",
    "confluent.value.schema.validation",
    "ottla.table.allow.gaps",
    "ottla.table.enable",
    "ottla.table.subject",
    "preallocate",
    "remote.log.copy.disable",
    "remote.log.delete.on.disable",
    "retention.bytes",
    "unclean.leader.election.enable",
}
NORMALISED: tuple[tuple[str, str, Value, str], ...] = (
    ("retention.ms", " 05 ", 5, "5"),
    ("retention.ms", "+7", 7, "7"),
    ("retention.ms", "-1", -1, "-1"),
    ("retention.bytes", "-99", -99, "-99"),
    ("flush.ms", str(MAX_LONG), MAX_LONG, str(MAX_LONG)),
    ("max.message.bytes", "0", 0, "0"),
    ("max.message.bytes", str(MAX_INT), MAX_INT, str(MAX_INT)),
    ("preallocate", " TRUE ", True, "true"),
    ("preallocate", "False", False, "false"),
    ("min.cleanable.dirty.ratio", " 1e-1 ", 0.1, "0.1"),
    ("min.cleanable.dirty.ratio", "1", 1.0, "1.0"),
    ("compression.type", " zstd ", "zstd", "zstd"),
    ("compression.gzip.level", "-1", -1, "-1"),
    ("compression.zstd.level", "-131072", -131072, "-131072"),
    ("cleanup.policy", "", (), ""),
    ("cleanup.policy", "  ", (), ""),
    ("cleanup.policy", " delete ", ("delete",), "delete"),
    ("cleanup.policy", "delete , compact", ("delete", "compact"), "delete,compact"),
    ("cleanup.policy", "delete,delete", ("delete",), "delete"),
    ("leader.replication.throttled.replicas", "*", ("*",), "*"),
    ("leader.replication.throttled.replicas", " 1:2 , 3:4,1:2 ", ("1:2", "3:4"), "1:2,3:4"),
)
TYPED = [
    (definition, text)
    for definition in TOPIC_DEFINITIONS.values()
    for text in WRONG_FOR_ITS_TYPE.get(definition.type, ())
]


def refusal(definition: Definition, text: str) -> str:
    with pytest.raises(InvalidConfig) as refused:
        parse(definition, text)
    assert refused.value.code is ErrorCode.INVALID_CONFIG
    return str(refused.value)


@pytest.mark.parametrize(("name", "text", "value", "normal"), NORMALISED)
def test_values_are_parsed_as_kafka_parses_them_and_normalized(name: str, text: str, value: Value, normal: str) -> None:
    definition = TOPIC_DEFINITIONS[name]

    assert parse(definition, text) == value
    assert type(parse(definition, text)) is type(value)
    assert normalised(definition, text) == normal
    assert normalised(definition, normal) == normal


@pytest.mark.parametrize(
    ("definition", "text"), TYPED, ids=lambda given: given.name if isinstance(given, Definition) else given[:12]
)
def test_a_value_of_another_type_is_refused(definition: Definition, text: str) -> None:
    assert f"for configuration {definition.name}: must be" in refusal(definition, text)


@pytest.mark.parametrize(("name", "text"), [(name, text) for name, texts in BREAKS_ITS_RULE.items() for text in texts])
def test_a_value_that_breaks_the_rule_is_refused(name: str, text: str) -> None:
    message = refusal(TOPIC_DEFINITIONS[name], text)

    assert name in message
    assert "must be" in message


def test_every_rule_of_a_topic_config_is_tested() -> None:
    assert {one.name for one in TOPIC_DEFINITIONS.values() if one.rule is not None} == BREAKS_ITS_RULE.keys()
    assert {one.name for one in TOPIC_DEFINITIONS.values() if one.rule is None} == UNRULED


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("segment.bytes", " 5", "Invalid value 5 for configuration segment.bytes: must be at least 1048576"),
        (
            "segment.ms",
            "1.5",
            "Invalid value 1.5 for configuration segment.ms: must be a whole number of 64 bits (LONG)",
        ),
        ("preallocate", "", "Invalid value '' for configuration preallocate: must be true or false"),
        (
            "compression.type",
            "none",
            "Invalid value none for configuration compression.type: must be one of uncompressed, zstd, lz4, snappy, ",
        ),
        (
            "cleanup.policy",
            "delete,purge",
            "Invalid value delete,purge for configuration cleanup.policy: must be a list of compact and delete",
        ),
        ("retention.ms", "a\nb", "Invalid value 'a\\nb' for configuration retention.ms: "),
        ("retention.ms", "x" * 500, f"Invalid value {'x' * 80}… for configuration retention.ms: "),
    ],
)
def test_a_refusal_names_the_config_the_value_and_what_is_allowed(name: str, text: str, message: str) -> None:
    assert refusal(TOPIC_DEFINITIONS[name], text).startswith(message)


def test_an_error_does_not_reveal_a_secret() -> None:
    secret = Definition(name="a.password", type=ConfigType.PASSWORD, default=None, documentation="")
    ruled = Definition(
        name="a.password", type=ConfigType.PASSWORD, default=None, documentation="", rule=one_of("other")
    )

    assert parse(secret, " kept as it is ") == " kept as it is "
    assert "hunter2" not in refusal(ruled, "hunter2")


@pytest.mark.parametrize(
    ("wrong", "right"),
    [
        ("rentention.ms", "retention.ms"),
        ("retention_ms", "retention.ms"),
        ("Retention.Ms", "retention.ms"),
        (" retention.ms", "retention.ms"),
        ("log.retention.ms", "retention.ms"),
        ("message.max.bytes", "max.message.bytes"),
        ("log.roll.ms", "segment.ms"),
        ("cleanup.polizy", "cleanup.policy"),
    ],
)
def test_an_unknown_config_is_refused_with_the_closest_name(wrong: str, right: str) -> None:
    message = re.escape(f"Unknown topic config name: {wrong}; did you mean {right}?")
    with pytest.raises(InvalidConfig, match=message):
        find(TOPIC_DEFINITIONS, "topic", wrong)


@pytest.mark.parametrize("wrong", ["zzzzzzzz", "", "q" * 10_000, "log.retention.ms" * 100_000])
def test_an_unknown_config_without_a_close_match_is_refused_without_a_suggestion(wrong: str) -> None:
    with pytest.raises(InvalidConfig) as refused:
        find(broker_definitions(), "broker", wrong)
    assert str(refused.value).startswith("Unknown broker config name: ")
    assert len(str(refused.value)) < 150


@given(st.sampled_from([*TOPIC_DEFINITIONS.values()]), st.text() | st.integers().map(str) | st.floats().map(str))
def test_any_text_is_refused_or_has_a_normal_form(definition: Definition, text: str) -> None:
    try:
        value = parse(definition, text)
    except InvalidConfig:
        return
    assert parse(definition, to_text(value)) == value
