"""Rules of tables that need neither a broker nor a table."""

from dataclasses import replace

import pytest

from ottla.columns.partitioning import PartitionField, parse_partitioning
from ottla.core.errors import ConfigError
from ottla.lake.covered import Covered
from ottla.lake.fencing import Verdict, judge, judge_claim
from ottla.lake.values import ValueSettings

BEFORE = Covered("ab", {0: 10}, 3, "me")
WANTED = replace(BEFORE, partitions={0: 20})


@pytest.mark.parametrize(
    ("now", "verdict"),
    [
        (WANTED, Verdict.LANDED),
        (BEFORE, Verdict.REPEAT),
        (replace(BEFORE, epoch=4, writer="other"), Verdict.FENCED),
        (replace(WANTED, epoch=4, writer="other"), Verdict.FENCED),
        (replace(BEFORE, writer="other"), Verdict.FENCED),
        (replace(BEFORE, partitions={0: 5}), Verdict.CHANGED),
    ],
)
def test_a_commit_without_a_known_outcome_is_judged_by_the_table(now: Covered, verdict: Verdict) -> None:
    assert judge(now, BEFORE, WANTED) is verdict


def test_of_two_claims_of_an_epoch_one_is_in_the_table() -> None:
    mine, other = replace(BEFORE, epoch=4), replace(BEFORE, epoch=4, writer="other")
    assert judge_claim(mine, mine) is Verdict.LANDED
    assert judge_claim(other, mine) is Verdict.REPEAT


@pytest.mark.parametrize(
    ("text", "fields"),
    [
        ("", []),
        ("country", [("country", "identity", "country")]),
        (
            "day(_timestamp), bucket(16, id)",
            [("_timestamp", "day", "_timestamp_day"), ("id", "bucket[16]", "id_bucket")],
        ),
        ("truncate(3,name),hour( at )", [("name", "truncate[3]", "name_trunc"), ("at", "hour", "at_hour")]),
    ],
)
def test_partitioning_is_written_as_in_spark(text: str, fields: list[tuple[str, str, str]]) -> None:
    found = parse_partitioning(text)
    assert [(each.column, each.transform, each.name) for each in found] == fields
    assert all(isinstance(each, PartitionField) for each in found)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("days(at)", "unknown partition transform 'days'; did you mean day?"),
        ("bucket(id)", "bucket needs a number"),
        ("day(at", "invalid partitioning"),
    ],
)
def test_invalid_partitioning_is_rejected(text: str, said: str) -> None:
    with pytest.raises(ConfigError) as refused:
        parse_partitioning(text)
    assert said in str(refused.value)


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        (ValueSettings(format="json"), "need columns"),
        (ValueSettings(columns="id bigint"), "for JSON values only"),
        (ValueSettings(format="registry"), "need the URL"),
    ],
)
def test_settings_that_do_not_belong_together_are_rejected(settings: ValueSettings, said: str) -> None:
    with pytest.raises(ConfigError, match=said):
        settings.check()


def test_how_values_are_decoded_is_kept_without_the_password_of_the_registry() -> None:
    settings = ValueSettings(format="registry", registry="https://ann:secret@registry:8081/api", subject="orders")

    assert "secret" not in settings.text()
    assert ValueSettings.parse(settings.text()) == replace(settings, registry="https://registry:8081/api")
    assert ValueSettings.parse(ValueSettings().text()) == ValueSettings()
