"""Topic configs: validation of records by their schema ids. Those of Confluent's brokers have Confluent's names."""

from typing import Final

from ottla.broker.configs.definition import ConfigType, Definition
from ottla.broker.configs.rules import Rule, one_of
from ottla.core.ids import problem_with_topic_name

_PACKAGE: Final = "io.confluent.kafka.serializers.subject."
_STRATEGIES: Final = tuple(
    f"{_PACKAGE}{name}" for name in ("TopicNameStrategy", "RecordNameStrategy", "TopicRecordNameStrategy")
)

SCHEMAS: Final = (
    *(
        Definition(
            name=f"confluent.{part}.schema.validation",
            type=ConfigType.BOOLEAN,
            default=False,
            is_hidden=True,
            documentation=(
                f"Reject records whose {part} has no schema id, or one that is not registered under the {part}'s "
                "subject in the schema registry. A null is accepted."
            ),
        )
        for part in ("key", "value")
    ),
    *(
        Definition(
            name=f"confluent.{part}.subject.name.strategy",
            type=ConfigType.STRING,
            default=_STRATEGIES[0],
            rule=one_of(*_STRATEGIES),
            is_hidden=True,
            documentation=f"How the {part}'s subject is named, for confluent.{part}.schema.validation.",
        )
        for part in ("key", "value")
    ),
    Definition(
        name="ottla.schema.validation.dead.letter.topic",
        type=ConfigType.STRING,
        default="",
        rule=Rule("the name of a topic, or empty", lambda value: not value or problem_with_topic_name(value) is None),
        is_hidden=True,
        documentation=(
            "Records that schema validation rejects are written to this topic, and the others of their batch are "
            "accepted. Empty: the batch is rejected. Ottla's own."
        ),
    ),
)
