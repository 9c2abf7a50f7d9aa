from __future__ import annotations

import pytest
from kio.schema.errors import ErrorCode as KioErrorCode

from ottla.core import errors
from ottla.core.errors import ApiError, ErrorCode, OttlaError

RAISED = [kind for kind in vars(errors).values() if isinstance(kind, type) and issubclass(kind, ApiError)]


@pytest.mark.parametrize("theirs", KioErrorCode, ids=lambda code: code.name)
def test_a_code_of_kafka_has_its_name_value_and_retriability(theirs: KioErrorCode) -> None:
    ours = ErrorCode(theirs.value)

    assert ours.name == theirs.name.upper()
    assert ours.is_retriable == theirs.retriable


def test_we_have_no_code_that_kafka_has_not() -> None:
    assert {code.value for code in ErrorCode} == {code.value for code in KioErrorCode}


def test_success_is_the_only_code_that_no_error_may_answer() -> None:
    assert ErrorCode.NONE not in {kind.code for kind in RAISED}


@pytest.mark.parametrize("kind", RAISED, ids=lambda kind: kind.__name__)
def test_an_answer_keeps_its_message_and_its_code(kind: type[ApiError]) -> None:
    error = kind("why")

    assert str(error) == "why"
    assert isinstance(error.code, ErrorCode)


def test_no_two_answers_have_the_same_code() -> None:
    assert len({kind.code for kind in RAISED}) == len(RAISED)


def test_everything_that_is_raised_on_purpose_has_one_root() -> None:
    raised = [kind for kind in vars(errors).values() if isinstance(kind, type) and issubclass(kind, Exception)]

    assert all(issubclass(kind, OttlaError) for kind in raised)
