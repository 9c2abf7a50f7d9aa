"""DeleteRecords (21): delete the records of a partition below an offset."""

from typing import ClassVar

from ottla.wire import apis
from ottla.wire.declare import Int16, Int32, Int64, Message, Request, Response, String


class DeleteRecordsPartitionResult(Message, frozen=True, kw_only=True):
    partition_index: Int32
    low_watermark: Int64
    error_code: Int16


class DeleteRecordsTopicResult(Message, frozen=True, kw_only=True):
    name: String
    partitions: tuple[DeleteRecordsPartitionResult, ...]


class DeleteRecordsResponse(Response, frozen=True, kw_only=True):
    API = apis.DELETE_RECORDS

    throttle_time_ms: Int32 = 0
    topics: tuple[DeleteRecordsTopicResult, ...]


class DeleteRecordsPartition(Message, frozen=True, kw_only=True):
    partition_index: Int32
    offset: Int64


class DeleteRecordsTopic(Message, frozen=True, kw_only=True):
    name: String
    partitions: tuple[DeleteRecordsPartition, ...]


class DeleteRecordsRequest(Request, frozen=True, kw_only=True):
    API = apis.DELETE_RECORDS
    RESPONSE: ClassVar = DeleteRecordsResponse

    topics: tuple[DeleteRecordsTopic, ...]
    timeout_ms: Int32
