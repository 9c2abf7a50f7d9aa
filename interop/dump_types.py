"""What DumpLogSegments says, as values."""

from dataclasses import dataclass, field
from enum import Enum
from pathlib import Path


@dataclass(frozen=True, slots=True)
class DumpedRecord:
    offset: int
    timestamp: int
    key_size: int  # -1: null
    value_size: int  # -1: null
    sequence: int
    header_keys: tuple[str, ...]
    control: str | None = None
    """`COMMIT` or `ABORT` for the marker at the end of a transaction."""
    key: str | None = None
    """Only with `print_data`; as UTF-8, and so not exact for other bytes."""
    payload: str | None = None


@dataclass(frozen=True, slots=True)
class DumpedBatch:
    base_offset: int
    last_offset: int
    count: int
    base_sequence: int
    last_sequence: int
    producer_id: int
    producer_epoch: int
    partition_leader_epoch: int
    is_transactional: bool
    is_control: bool
    delete_horizon_ms: int | None
    position: int
    timestamp_type: str  # CreateTime | LogAppendTime
    max_timestamp: int
    size: int
    magic: int
    compression: str
    crc: int
    is_valid: bool
    records: list[DumpedRecord] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class OffsetEntry:
    offset: int
    position: int


@dataclass(frozen=True, slots=True)
class TimeEntry:
    timestamp: int
    offset: int


@dataclass(frozen=True, slots=True)
class AbortedTransaction:
    version: int
    producer_id: int
    first_offset: int
    last_offset: int
    last_stable_offset: int


@dataclass(frozen=True, slots=True)
class ProducerEntry:
    producer_id: int
    producer_epoch: int
    coordinator_epoch: int
    current_txn_first_offset: int | None
    last_timestamp: int
    first_sequence: int | None = None
    last_sequence: int | None = None
    last_offset: int | None = None
    offset_delta: int | None = None
    timestamp: int | None = None


class ProblemKind(Enum):
    """The tool exits with 0 for all of these but `CRASHED`."""

    INDEX_MISMATCH = "an offset index entry does not point at the batch that ends with its offset"
    TIMESTAMP_MISMATCH = "a time index entry holds another timestamp than the batch it names"
    TIMESTAMP_OUT_OF_ORDER = "a time index entry is not later than the one before it"
    OFFSET_NOT_FOUND = "a time index entry holds an offset that no batch ends with"
    NON_CONSECUTIVE_OFFSETS = "offsets are missing; expected after compaction only"
    INVALID_BATCH = "a batch does not match its checksum, or is of no known format"
    TRAILING_BYTES = "the log ends with bytes that are not a batch"
    UNREAD_ENTRIES = "an index is longer than its entries; expected for the active segment after a kill only"
    MISSING_INDEX = "a log has no offset index or no time index beside it"
    CORRUPT_TXN_INDEX = "a transaction index entry makes no sense"
    CORRUPT_SNAPSHOT = "a producer snapshot does not match its checksum or its format"
    UNKNOWN_FILE = "a file of no known kind"
    CRASHED = "the tool itself failed"
    OTHER = "the tool wrote something that this harness does not know"


@dataclass(frozen=True, slots=True)
class Problem:
    kind: ProblemKind
    file: Path | None
    detail: str


@dataclass(frozen=True, slots=True)
class Dump:
    exit_code: int
    problems: tuple[Problem, ...]
    batches: dict[Path, tuple[DumpedBatch, ...]]
    offset_entries: dict[Path, tuple[OffsetEntry, ...]]
    time_entries: dict[Path, tuple[TimeEntry, ...]]
    aborted: dict[Path, tuple[AbortedTransaction, ...]]
    producers: dict[Path, tuple[ProducerEntry, ...]]

    @property
    def is_clean(self) -> bool:
        return not self.problems

    def records(self, file: Path) -> tuple[DumpedRecord, ...]:
        return tuple(record for batch in self.batches[file] for record in batch.records)

    def problems_except(self, *expected: ProblemKind) -> tuple[Problem, ...]:
        return tuple(problem for problem in self.problems if problem.kind not in expected)
