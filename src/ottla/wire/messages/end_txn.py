"""EndTxn (26): commit or abort a transaction.

From version 5 the response contains the producer's next epoch (KIP-890).
"""

from typing import Annotated, ClassVar

from ottla.wire import apis
from ottla.wire.declare import Bool, Int16, Int32, Int64, Request, Response, Since, String


class EndTxnResponse(Response, frozen=True, kw_only=True):
    API = apis.END_TXN

    throttle_time_ms: Int32 = 0
    error_code: Int16
    producer_id: Annotated[Int64, Since(5)] = -1
    producer_epoch: Annotated[Int16, Since(5)] = -1


class EndTxnRequest(Request, frozen=True, kw_only=True):
    API = apis.END_TXN
    RESPONSE: ClassVar = EndTxnResponse

    transactional_id: String
    producer_id: Int64
    producer_epoch: Int16
    committed: Bool
