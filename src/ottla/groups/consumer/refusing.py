"""Errors of heartbeats."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ottla.groups.actions import AnswerHeartbeat
from ottla.wire.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatResponse

if TYPE_CHECKING:
    from ottla.core.errors import ErrorCode
    from ottla.groups.actions import Token


def refuse_heartbeat(token: Token, error: ErrorCode, message: str | None = None) -> AnswerHeartbeat:
    response = ConsumerGroupHeartbeatResponse(
        error_code=error, error_message=message, member_epoch=0, heartbeat_interval_ms=0
    )
    return AnswerHeartbeat(token, response)
