from __future__ import annotations

import pytest
from kio.schema.errors import ErrorCode as KioErrorCode

from ottla.core import errors
from ottla.core.errors import ApiError, ErrorCode, OttlaError

RAISED = [
    kind
    for kind in vars(errors).values()
    # InvalidRecords is an InvalidRecord with details.
    if isinstance(kind, type) and issubclass(kind, ApiError) and kind is not errors.InvalidRecords
]


@pytest.mark.parametrize("theirs", KioErrorCode, ids=lambda code: code.name)
def test_a_code_of_kafka_has_its_name_value_and_retriability(theirs: KioErrorCode) -> None:
    ours = ErrorCode(theirs.value)

    assert ours.name == theirs.name.upper()
    assert ours.is_retriable == theirs.retriable


def test_every_error_code_exists_in_kafka() -> None:
    assert {code.value for code in ErrorCode} == {code.value for code in KioErrorCode}


def test_no_error_class_has_the_success_code() -> None:
    assert ErrorCode.NONE not in {kind.code for kind in RAISED}


@pytest.mark.parametrize("kind", RAISED, ids=lambda kind: kind.__name__)
def test_an_api_error_keeps_its_message_and_code(kind: type[ApiError]) -> None:
    error = kind("why")

    assert str(error) == "why"
    assert isinstance(error.code, ErrorCode)


def test_no_two_error_classes_have_the_same_code() -> None:
    assert len({kind.code for kind in RAISED}) == len(RAISED)


def test_all_expected_errors_share_a_base_class() -> None:
    raised = [kind for kind in vars(errors).values() if isinstance(kind, type) and issubclass(kind, Exception)]

    assert all(issubclass(kind, OttlaError) for kind in raised)
