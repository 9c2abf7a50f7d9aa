"""FindCoordinator (10): the coordinator of a group, a transactional id or a share partition.

Up to version 3 for one `key`; from version 4 for many `coordinator_keys`.
"""

from typing import Annotated, ClassVar

from ottla.wire import apis
from ottla.wire.declare import (
    Int8,
    Int16,
    Int32,
    Message,
    NullableString,
    Request,
    Response,
    Since,
    String,
    Until,
)


class Coordinator(Message, frozen=True, kw_only=True):
    key: String
    node_id: Int32
    host: String
    port: Int32
    error_code: Int16
    error_message: NullableString


class FindCoordinatorResponse(Response, frozen=True, kw_only=True):
    API = apis.FIND_COORDINATOR

    throttle_time_ms: Annotated[Int32, Since(1)] = 0
    error_code: Annotated[Int16, Until(3)] = 0
    error_message: Annotated[NullableString, Since(1), Until(3)] = None
    node_id: Annotated[Int32, Until(3)] = 0
    host: Annotated[String, Until(3)] = ""
    port: Annotated[Int32, Until(3)] = 0
    coordinators: Annotated[tuple[Coordinator, ...], Since(4)] = ()


class FindCoordinatorRequest(Request, frozen=True, kw_only=True):
    API = apis.FIND_COORDINATOR
    RESPONSE: ClassVar = FindCoordinatorResponse

    key: Annotated[String, Until(3)] = ""
    key_type: Annotated[Int8, Since(1)] = 0
    coordinator_keys: Annotated[tuple[String, ...], Since(4)] = ()
