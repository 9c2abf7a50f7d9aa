from __future__ import annotations

import logging
from typing import TYPE_CHECKING

import pytest

from ottla.cli.server.logs import _TextFormatter, set_up_logging

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture
def kazoo(monkeypatch: pytest.MonkeyPatch) -> Iterator[logging.Logger]:
    monkeypatch.setattr(logging, "basicConfig", lambda **_: None)
    logger = logging.getLogger("kazoo")
    before = logger.level
    yield logger
    logger.setLevel(before)


@pytest.mark.parametrize(("level", "is_told"), [("info", False), ("warning", False), ("debug", True)])
def test_zookeeper_connection_attempts_are_logged_at_debug_level(
    kazoo: logging.Logger, level: str, is_told: bool
) -> None:
    kazoo.setLevel(logging.NOTSET)
    set_up_logging(level, "text")

    assert kazoo.isEnabledFor(logging.WARNING) is is_told
    assert kazoo.isEnabledFor(logging.ERROR)


def test_a_name_cannot_forge_a_log_line_or_send_terminal_escapes() -> None:
    name = "t\n2026-01-01T00:00:00.000Z INFO forged\r\x1b[2J\x9b\u2028x"
    record = logging.makeLogRecord({"msg": "no topic %s", "args": (name,), "levelname": "INFO", "name": "x"})
    text = _TextFormatter(None).format(record)
    assert text.isprintable()
    assert text.endswith("no topic t\\n2026-01-01T00:00:00.000Z INFO forged\\r\\x1b[2J\\x9b\\u2028x")
