"""The endpoints of queues in the OpenAPI description; served by `queues`, with or without a broker."""

from __future__ import annotations

from typing import Annotated, Final, Literal

import msgspec

from ottla.http.framework.endpoints import Endpoint
from ottla.http.framework.models import RequestStruct, Struct
from ottla.http.queues.config import MAX_MESSAGES
from ottla.http.queues.handlers import MAX_TIMEOUT_MS, PREFIX, NewQueue, Queues
from ottla.http.queues.messages import PushedMessages, QueueMessage


class QueueRefusal(Struct, frozen=True, kw_only=True):
    error: str


class QueueNames(Struct, frozen=True, kw_only=True):
    queues: list[str]


class QueueState(Struct, frozen=True, kw_only=True):
    name: str
    id: int
    """Its newest part."""
    count_pushed: int
    """Its number of messages."""
    is_ready: bool


class PushedCount(Struct, frozen=True, kw_only=True):
    id: int
    """The part that they were written to."""
    count: int


class QueueConsumers(Struct, frozen=True, kw_only=True):
    consumers: list[str]


class QueueMessages(Struct, frozen=True, kw_only=True):
    messages: list[QueueMessage]


class QueueCommitQuery(RequestStruct, frozen=True, kw_only=True):
    part: Annotated[int, msgspec.Meta(ge=0)] | None = None
    offset: Annotated[int, msgspec.Meta(ge=0)] | None = None
    """Of the last processed message, as returned. Without them: everything returned last."""


class QueueMessagesQuery(RequestStruct, frozen=True, kw_only=True):
    timeout_ms: Annotated[int, msgspec.Meta(ge=0, le=MAX_TIMEOUT_MS)] = 1000
    """How long to wait for the first message."""
    max_messages: Annotated[int, msgspec.Meta(ge=1, le=MAX_MESSAGES)] | None = None
    """Maximum number; default `queues.default_batch_size`."""
    start: Literal["earliest", "latest_part"] = "earliest"
    """Where a new consumer starts: at the first message, or with the newest part."""


_QUEUE: Final = PREFIX + "/{queue}"
_CONSUMER: Final = _QUEUE + "/consumers/{consumer}"

QUEUE_ENDPOINTS: Final = tuple(
    endpoint._replace(refusal=QueueRefusal)
    for endpoint in (
        Endpoint("GET", PREFIX, Queues.list_queues, "The names of all queues", answer=QueueNames),
        Endpoint("POST", PREFIX, Queues.create_queue, "Create a queue", body=NewQueue, answer=QueueState, status=201),
        Endpoint("GET", _QUEUE, Queues.show_queue, "The state of a queue", answer=QueueState),
        Endpoint("DELETE", _QUEUE, Queues.delete_queue, "Delete a queue and all its messages"),
        Endpoint(
            "POST",
            f"{_QUEUE}/messages",
            Queues.push_messages,
            "Push messages: many as JSON, or one raw",
            body=PushedMessages,
            answer=PushedCount,
            takes="application/octet-stream",
        ),
        Endpoint(
            "GET", f"{_QUEUE}/consumers", Queues.list_consumers, "The consumers of a queue", answer=QueueConsumers
        ),
        Endpoint(
            "GET",
            f"{_CONSUMER}/messages",
            Queues.next_messages,
            "The next messages of a consumer; repeated until committed",
            query=QueueMessagesQuery,
            answer=QueueMessages,
        ),
        Endpoint(
            "POST",
            f"{_CONSUMER}/commit",
            Queues.commit,
            "Commit up to a message, or what was returned last",
            query=QueueCommitQuery,
        ),
    )
)
