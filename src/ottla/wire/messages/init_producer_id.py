"""InitProducerId (22): get a producer id and epoch, and fence the previous producer of the transactional id."""

from typing import Annotated, ClassVar

from ottla.wire import apis
from ottla.wire.declare import Int16, Int32, Int64, NullableString, Request, Response, Since


class InitProducerIdResponse(Response, frozen=True, kw_only=True):
    API = apis.INIT_PRODUCER_ID

    throttle_time_ms: Int32 = 0
    error_code: Int16
    producer_id: Int64 = -1
    producer_epoch: Int16


class InitProducerIdRequest(Request, frozen=True, kw_only=True):
    API = apis.INIT_PRODUCER_ID
    RESPONSE: ClassVar = InitProducerIdResponse

    transactional_id: NullableString
    transaction_timeout_ms: Int32
    producer_id: Annotated[Int64, Since(3)] = -1
    producer_epoch: Annotated[Int16, Since(3)] = -1
