"""WriteTxnMarkers (27): write end transaction markers to partitions."""

from typing import Annotated, ClassVar

from ottla.wire import apis
from ottla.wire.declare import Bool, Int8, Int16, Int32, Int64, Message, Request, Response, Since, String


class WritableTxnMarkerPartitionResult(Message, frozen=True, kw_only=True):
    partition_index: Int32
    error_code: Int16


class WritableTxnMarkerTopicResult(Message, frozen=True, kw_only=True):
    name: String
    partitions: tuple[WritableTxnMarkerPartitionResult, ...]


class WritableTxnMarkerResult(Message, frozen=True, kw_only=True):
    producer_id: Int64
    topics: tuple[WritableTxnMarkerTopicResult, ...]


class WriteTxnMarkersResponse(Response, frozen=True, kw_only=True):
    API = apis.WRITE_TXN_MARKERS

    markers: tuple[WritableTxnMarkerResult, ...]


class WritableTxnMarkerTopic(Message, frozen=True, kw_only=True):
    name: String
    partition_indexes: tuple[Int32, ...]


class WritableTxnMarker(Message, frozen=True, kw_only=True):
    producer_id: Int64
    producer_epoch: Int16
    transaction_result: Bool
    topics: tuple[WritableTxnMarkerTopic, ...]
    coordinator_epoch: Int32
    transaction_version: Annotated[Int8, Since(2)] = 0


class WriteTxnMarkersRequest(Request, frozen=True, kw_only=True):
    API = apis.WRITE_TXN_MARKERS
    RESPONSE: ClassVar = WriteTxnMarkersResponse

    markers: tuple[WritableTxnMarker, ...]
