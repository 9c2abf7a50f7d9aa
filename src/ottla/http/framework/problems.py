"""Errors as `application/problem+json` (RFC 9457): what happened, and what to do about it."""

from __future__ import annotations

from http import HTTPStatus
from typing import TYPE_CHECKING, Final

import msgspec
from starlette.responses import Response

from ottla.core.errors import ErrorCode

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ottla.core.errors import ApiError

PROBLEM_TYPE: Final = "application/problem+json"


_TITLES: Final = {413: "Content Too Large", 416: "Range Not Satisfiable"}
"""The reason phrases of RFC 9110, for any Python version."""


class ProblemDetails(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Why a request was rejected."""

    type: str = "about:blank"
    title: str
    status: int
    detail: str = ""
    code: str = ""
    """Kafka's error name, if there is one."""
    hint: str = ""
    """What to do about it."""
    written: int | None = None
    """How many messages were written before the error."""


class Problem(Exception):
    """Rejects the request with this problem."""

    def __init__(self, status: int, detail: str, *, hint: str = "", code: str = "", written: int | None = None) -> None:
        super().__init__(detail)
        self.details = ProblemDetails(
            title=_TITLES.get(status) or HTTPStatus(status).phrase,
            status=status,
            detail=detail,
            hint=hint,
            code=code,
            written=written,
        )

    @property
    def status(self) -> int:
        return self.details.status


class BadRequest(Problem):
    def __init__(self, detail: str, *, hint: str = "", written: int | None = None) -> None:
        super().__init__(400, detail, hint=hint, written=written)


_STATUSES: Final[Mapping[ErrorCode, int]] = {
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION: 404,
    ErrorCode.UNKNOWN_TOPIC_ID: 404,
    ErrorCode.GROUP_ID_NOT_FOUND: 404,
    ErrorCode.RESOURCE_NOT_FOUND: 404,
    ErrorCode.TRANSACTIONAL_ID_NOT_FOUND: 404,
    ErrorCode.TOPIC_ALREADY_EXISTS: 409,
    ErrorCode.NON_EMPTY_GROUP: 409,
    ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC: 409,
    ErrorCode.UNKNOWN_MEMBER_ID: 409,
    ErrorCode.ILLEGAL_GENERATION: 409,
    ErrorCode.REBALANCE_IN_PROGRESS: 409,
    ErrorCode.GROUP_MAX_SIZE_REACHED: 409,
    ErrorCode.MESSAGE_TOO_LARGE: 413,
    ErrorCode.RECORD_LIST_TOO_LARGE: 413,
    ErrorCode.OFFSET_OUT_OF_RANGE: 416,
    ErrorCode.THROTTLING_QUOTA_EXCEEDED: 429,
    ErrorCode.TOPIC_AUTHORIZATION_FAILED: 403,
    ErrorCode.GROUP_AUTHORIZATION_FAILED: 403,
    ErrorCode.CLUSTER_AUTHORIZATION_FAILED: 403,
    ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED: 403,
    ErrorCode.SASL_AUTHENTICATION_FAILED: 401,
    ErrorCode.SECURITY_DISABLED: 409,
    ErrorCode.KAFKA_STORAGE_ERROR: 503,
    ErrorCode.COORDINATOR_NOT_AVAILABLE: 503,
    ErrorCode.COORDINATOR_LOAD_IN_PROGRESS: 503,
    ErrorCode.NOT_COORDINATOR: 503,
    ErrorCode.NOT_LEADER_OR_FOLLOWER: 503,
    ErrorCode.LEADER_NOT_AVAILABLE: 503,
    ErrorCode.NOT_ENOUGH_REPLICAS: 503,
    ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND: 503,
    ErrorCode.OFFSET_NOT_AVAILABLE: 503,
    ErrorCode.BROKER_NOT_AVAILABLE: 503,
    ErrorCode.REQUEST_TIMED_OUT: 504,
    ErrorCode.CORRUPT_MESSAGE: 500,
    ErrorCode.UNKNOWN_SERVER_ERROR: 500,
}

_HINTS: Final[Mapping[ErrorCode, str]] = {
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION: "GET /v1/topics lists the topics and their partition counts.",
    ErrorCode.GROUP_ID_NOT_FOUND: "GET /v1/groups lists the groups.",
    ErrorCode.TRANSACTIONAL_ID_NOT_FOUND: "GET /v1/transactions lists the transactional ids.",
    ErrorCode.TOPIC_ALREADY_EXISTS: "Choose another name, or PATCH the configs of the existing topic.",
    ErrorCode.NON_EMPTY_GROUP: "Stop the members of the group first.",
    ErrorCode.UNKNOWN_MEMBER_ID: "The group has active members: stop them first.",
    ErrorCode.REBALANCE_IN_PROGRESS: "Retry when the group is stable.",
    ErrorCode.MESSAGE_TOO_LARGE: "Send smaller messages, or raise max.message.bytes of the topic.",
    ErrorCode.OFFSET_OUT_OF_RANGE: "GET /v1/topics/{name} shows the first and the next offset of each partition.",
    ErrorCode.INVALID_CONFIG: "GET /v1/topics/{name}/configs lists the configs and their values.",
    ErrorCode.INVALID_TOPIC_EXCEPTION: "Topic names are up to 249 ASCII letters, digits, '.', '_' and '-'.",
    ErrorCode.BROKER_NOT_AVAILABLE: "GET /v1/cluster shows which nodes are reachable. Retry when the node is.",
    ErrorCode.NOT_LEADER_OR_FOLLOWER: "Retry shortly: a leader is being elected.",
    ErrorCode.KAFKA_STORAGE_ERROR: "Check the disk: it may be full or failing. See the broker's log.",
}

_SAYINGS: Final[Mapping[ErrorCode, str]] = {
    ErrorCode.GROUP_ID_NOT_FOUND: "no such group",
    ErrorCode.NON_EMPTY_GROUP: "the group has members",
    ErrorCode.UNKNOWN_MEMBER_ID: "the group has members, and this is not one of them",
    ErrorCode.OFFSET_OUT_OF_RANGE: "the offset is out of range",
    ErrorCode.POLICY_VIOLATION: "a policy of this topic forbids it",
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION: "no such topic or partition",
}
"""Error texts for responses with only a code."""


def problem_of(refused: ApiError, *, written: int | None = None) -> Problem:
    """The HTTP problem of a broker error."""
    code = refused.code
    detail = str(refused) or _SAYINGS.get(code, code.name.lower().replace("_", " "))
    return Problem(_STATUSES.get(code, 400), detail, hint=_HINTS.get(code, ""), code=code.name, written=written)


def problem_response(problem: Problem, headers: Mapping[str, str] | None = None) -> Response:
    body = msgspec.json.encode(problem.details)
    return Response(body, problem.status, media_type=PROBLEM_TYPE, headers=headers)
