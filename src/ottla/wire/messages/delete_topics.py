"""DeleteTopics (20): `topic_names` up to version 5, names or ids in `topics` from version 6."""

from typing import Annotated, ClassVar

from ottla.wire import apis
from ottla.wire.declare import (
    NO_UUID,
    Int16,
    Int32,
    Message,
    NullableSince,
    NullableString,
    Request,
    Response,
    Since,
    String,
    Until,
    Uuid,
)


class DeletableTopicResult(Message, frozen=True, kw_only=True):
    name: Annotated[NullableString, NullableSince(6)]
    topic_id: Annotated[Uuid, Since(6)] = NO_UUID
    error_code: Int16
    error_message: Annotated[NullableString, Since(5)] = None


class DeleteTopicsResponse(Response, frozen=True, kw_only=True):
    API = apis.DELETE_TOPICS

    throttle_time_ms: Int32 = 0
    responses: tuple[DeletableTopicResult, ...]


class DeleteTopicState(Message, frozen=True, kw_only=True):
    name: NullableString = None
    topic_id: Uuid


class DeleteTopicsRequest(Request, frozen=True, kw_only=True):
    API = apis.DELETE_TOPICS
    RESPONSE: ClassVar = DeleteTopicsResponse

    topic_names: Annotated[tuple[String, ...], Until(5)] = ()
    topics: Annotated[tuple[DeleteTopicState, ...], Since(6)] = ()
    timeout_ms: Int32
