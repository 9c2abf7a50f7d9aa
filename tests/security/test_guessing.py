"""Throttling of password guesses."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tests.broker.raw_client import RawClient

from ottla.core.errors import ErrorCode
from ottla.net.sasl.login_throttle import LoginThrottle

from .securing import secured
from .test_gate import log_in

if TYPE_CHECKING:
    from pathlib import Path

    import pytest


def guessing(failures: int, host: str = "10.0.0.1") -> LoginThrottle:
    made = LoginThrottle()
    for _ in range(failures):
        made.failed(host, 0.0)
    return made


def test_a_few_failures_cause_no_delay() -> None:
    assert guessing(9).wait_s("10.0.0.1", 1.0) == 0


def test_the_delay_grows_up_to_a_few_seconds() -> None:
    waits = [guessing(failures).wait_s("10.0.0.1", 0.0) for failures in (10, 11, 12, 20, 1000)]
    assert waits == [0.25, 0.5, 1.0, 4.0, 4.0]


def test_guessing_on_many_connections_is_not_faster() -> None:
    made = guessing(20)
    waits = [made.wait_s("10.0.0.1", 0.0) for _ in range(10)]
    assert waits == [4.0, 8.0, 12.0, 16.0, 20.0, 24.0, None, None, None, None]


def test_other_users_are_not_delayed_and_failures_expire() -> None:
    made = guessing(20)
    assert made.wait_s("10.0.0.2", 0.0) == 0
    assert made.wait_s("10.0.0.1", 301.0) == 0
    made.succeeded("10.0.0.1")
    assert made.wait_s("10.0.0.1", 0.0) == 0


def test_an_address_that_keeps_failing_waits_even_with_the_right_password(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with secured(tmp_path) as broker:
        logins: Any = broker.embedded.broker.security.logins
        waited: list[float] = []
        for _ in range(10):
            with RawClient(broker.address("SASL_PLAINTEXT")) as client:
                assert log_in(client, "ann", "wrong").error_code == ErrorCode.SASL_AUTHENTICATION_FAILED
        wait_s = logins._guessing.wait_s
        monkeypatch.setattr(logins._guessing, "wait_s", lambda *given: waited.append(wait_s(*given)) or 0.0)
        with RawClient(broker.address("SASL_PLAINTEXT")) as client:
            assert log_in(client, "ann").error_code == ErrorCode.NONE
        assert waited == [0.25]
