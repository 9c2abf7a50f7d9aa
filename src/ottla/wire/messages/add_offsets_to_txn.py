"""AddOffsetsToTxn (25): add a group's offsets to a transaction."""

from typing import ClassVar

from ottla.wire import apis
from ottla.wire.declare import Int16, Int32, Int64, Request, Response, String


class AddOffsetsToTxnResponse(Response, frozen=True, kw_only=True):
    API = apis.ADD_OFFSETS_TO_TXN

    throttle_time_ms: Int32 = 0
    error_code: Int16


class AddOffsetsToTxnRequest(Request, frozen=True, kw_only=True):
    API = apis.ADD_OFFSETS_TO_TXN
    RESPONSE: ClassVar = AddOffsetsToTxnResponse

    transactional_id: String
    producer_id: Int64
    producer_epoch: Int16
    group_id: String
