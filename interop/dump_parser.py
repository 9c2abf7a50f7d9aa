"""Parses the output of DumpLogSegments of Apache Kafka 4.3.

The contents of the files come on stdout, one file after the other. Problems are listed on stderr at the end
of the run, grouped by kind and file, and do not change the exit code; a failed checksum and trailing bytes
are told on stdout only. So nothing here is taken for good unless it was recognised: any other line becomes
a problem itself.
"""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from interop.dump_types import (
    AbortedTransaction,
    DumpedBatch,
    DumpedRecord,
    OffsetEntry,
    Problem,
    ProblemKind,
    ProducerEntry,
    TimeEntry,
)

if TYPE_CHECKING:
    from collections.abc import Callable

RECORD = re.compile(
    r"\| offset: (?P<offset>\d+) \w+: (?P<timestamp>-?\d+) keySize: (?P<key_size>-?\d+) "
    r"valueSize: (?P<value_size>-?\d+) sequence: (?P<sequence>-?\d+) headerKeys: \[(?P<headers>.*?)\]"
    r"(?: endTxnMarker: (?P<control>\w+) coordinatorEpoch: -?\d+)?"
    r"(?: key: (?P<key>.*?))?(?: payload: (?P<payload>.*))?",
    re.DOTALL,
)
MAGIC = 2
TXN_INDEX_VERSION = 0
BENIGN_STDERR = re.compile(r"Picked up \w+:|.* VM warning: |WARNING: ")
HEADINGS = {
    "Mismatches in :": ProblemKind.INDEX_MISMATCH,
    "Found timestamp mismatch in :": ProblemKind.TIMESTAMP_MISMATCH,
    "Found out of order timestamp in :": ProblemKind.TIMESTAMP_OUT_OF_ORDER,
    "The following indexed offsets are not found in :": ProblemKind.OFFSET_NOT_FOUND,
    "Non-consecutive offsets in ": ProblemKind.NON_CONSECUTIVE_OFFSETS,
}
DETAIL = re.compile(r"  Index |Indexed offset: |  -?\d+ is followed by ")


class StdoutParser:
    """Fills in the contents of one file after the other."""

    def __init__(self) -> None:
        self.problems: list[Problem] = []
        self.batches: dict[Path, list[DumpedBatch]] = {}
        self.offset_entries: dict[Path, list[OffsetEntry]] = {}
        self.time_entries: dict[Path, list[TimeEntry]] = {}
        self.aborted: dict[Path, list[AbortedTransaction]] = {}
        self.producers: dict[Path, list[ProducerEntry]] = {}
        self.file = Path()
        self._take: Callable[[str], bool] = lambda _line: False

    def parse(self, text: str) -> None:
        if not text:
            return
        # Not splitlines(): a payload may hold the other characters that it splits at.
        for line in text.removesuffix("\n").split("\n"):
            if line.startswith("Dumping "):
                self._begin(Path(line.removeprefix("Dumping ")))
            elif not self._take(line):
                self._problem(ProblemKind.OTHER, line)

    def _begin(self, file: Path) -> None:
        self.file = file
        match file.suffix:
            case ".log":
                self.batches[file] = []
                self._take = self._log_line
            case ".index":
                self.offset_entries[file] = []
                self._take = self._index_line
            case ".timeindex":
                self.time_entries[file] = []
                self._take = self._time_index_line
            case ".txnindex":
                self.aborted[file] = []
                self._take = self._txn_index_line
            case ".snapshot":
                self.producers[file] = []
                self._take = self._snapshot_line

    def _log_line(self, line: str) -> bool:
        batches = self.batches[self.file]
        if line.startswith("baseOffset: "):
            batch = _batch(_fields(line))
            # The magic is not under the checksum, and the tool reads any later one as 2.
            if not batch.is_valid or batch.magic != MAGIC:
                self._problem(ProblemKind.INVALID_BATCH, line)
            batches.append(batch)
        elif line.startswith("Found ") and line.endswith(f"invalid bytes at the end of {self.file.name}"):
            self._problem(ProblemKind.TRAILING_BYTES, line)
        elif batches and (found := RECORD.fullmatch(line)):
            batches[-1].records.append(_record(found))
        elif batches and batches[-1].records and batches[-1].records[-1].payload is not None:
            last = batches[-1].records.pop()
            batches[-1].records.append(replace(last, payload=f"{last.payload}\n{line}"))
        else:
            return line.startswith("Log starting offset: ")
        return True

    def _index_line(self, line: str) -> bool:
        if line.startswith("offset: "):
            fields = _fields(line)
            self.offset_entries[self.file].append(
                OffsetEntry(offset=int(fields["offset"]), position=int(fields["position"]))
            )
            return True
        return line in {f"{self.file} is empty.", f"{self.file} passed sanity check."}

    def _time_index_line(self, line: str) -> bool:
        if line.startswith("timestamp: "):
            fields = _fields(line)
            self.time_entries[self.file].append(
                TimeEntry(timestamp=int(fields["timestamp"]), offset=int(fields["offset"]))
            )
            return True
        return line == f"{self.file} passed sanity check."

    def _txn_index_line(self, line: str) -> bool:
        if not line.startswith("version: "):
            return False
        fields = {name: int(value) for name, value in _fields(line).items()}
        aborted = AbortedTransaction(
            version=fields["version"],
            producer_id=fields["producerId"],
            first_offset=fields["firstOffset"],
            last_offset=fields["lastOffset"],
            last_stable_offset=fields["lastStableOffset"],
        )
        # A starting broker rejects the second, but does not notice the first.
        if aborted.version != TXN_INDEX_VERSION or aborted.last_offset < int(self.file.stem):
            self._problem(ProblemKind.CORRUPT_TXN_INDEX, line)
        self.aborted[self.file].append(aborted)
        return True

    def _snapshot_line(self, line: str) -> bool:
        if not line.startswith("producerId: "):
            return False
        self.producers[self.file].append(_producer(_fields(line)))
        return True

    def _problem(self, kind: ProblemKind, detail: str) -> None:
        self.problems.append(Problem(kind, self.file, detail))


def problems_on_stderr(text: str) -> list[Problem]:
    problems: list[Problem] = []
    kind, file = ProblemKind.OTHER, None
    for line in text.splitlines():
        heading = next((start for start in HEADINGS if line.startswith(start)), None)
        if heading is not None:
            kind, file = HEADINGS[heading], Path(line.removeprefix(heading))
        elif line.startswith("Ignoring unknown file "):
            unknown = Path(line.removeprefix("Ignoring unknown file "))
            problems.append(Problem(ProblemKind.UNKNOWN_FILE, unknown, line))
        elif file is not None and DETAIL.match(line):
            if not _is_the_tools_own_slip(line, file):
                problems.append(Problem(kind, file, line.strip()))
        elif line.startswith("Snapshot "):
            problems.append(Problem(ProblemKind.CORRUPT_SNAPSHOT, None, line))
        elif line and not BENIGN_STDERR.match(line):
            problems.append(Problem(ProblemKind.OTHER, None, line))
    return problems


def _is_the_tools_own_slip(line: str, file: Path) -> bool:
    # Since 4.3 the first record of a segment is compared with -1 instead of with nothing.
    return line == f"  -1 is followed by {int(file.stem)}"


def _fields(line: str) -> dict[str, str]:
    words = line.split(" ")
    return {name.removesuffix(":"): value for name, value in zip(words[::2], words[1::2], strict=True)}


def _optional(text: str) -> int | None:
    number = re.fullmatch(r"OptionalLong\[(-?\d+)\]", text)
    return int(number[1]) if number else None


def _batch(fields: dict[str, str]) -> DumpedBatch:
    timestamp_type = next(name for name in fields if name.endswith("Time") or name == "NoTimestampType")
    return DumpedBatch(
        base_offset=int(fields["baseOffset"]),
        last_offset=int(fields["lastOffset"]),
        count=int(fields["count"]),
        base_sequence=int(fields["baseSequence"]),
        last_sequence=int(fields["lastSequence"]),
        producer_id=int(fields["producerId"]),
        producer_epoch=int(fields["producerEpoch"]),
        partition_leader_epoch=int(fields["partitionLeaderEpoch"]),
        is_transactional=fields["isTransactional"] == "true",
        is_control=fields["isControl"] == "true",
        delete_horizon_ms=_optional(fields["deleteHorizonMs"]),
        position=int(fields["position"]),
        timestamp_type=timestamp_type,
        max_timestamp=int(fields[timestamp_type]),
        size=int(fields["size"]),
        magic=int(fields["magic"]),
        compression=fields["compresscodec"],
        crc=int(fields["crc"]),
        is_valid=fields["isvalid"] == "true",
    )


def _record(found: re.Match[str]) -> DumpedRecord:
    return DumpedRecord(
        offset=int(found["offset"]),
        timestamp=int(found["timestamp"]),
        key_size=int(found["key_size"]),
        value_size=int(found["value_size"]),
        sequence=int(found["sequence"]),
        header_keys=tuple(found["headers"].split(",")) if found["headers"] else (),
        control=found["control"],
        key=found["key"],
        payload=found["payload"],
    )


def _producer(fields: dict[str, str]) -> ProducerEntry:
    def number(name: str) -> int | None:
        return int(fields[name]) if name in fields else None

    return ProducerEntry(
        producer_id=int(fields["producerId"]),
        producer_epoch=int(fields["producerEpoch"]),
        coordinator_epoch=int(fields["coordinatorEpoch"]),
        current_txn_first_offset=_optional(fields["currentTxnFirstOffset"]),
        last_timestamp=int(fields["lastTimestamp"]),
        first_sequence=number("firstSequence"),
        last_sequence=number("lastSequence"),
        last_offset=number("lastOffset"),
        offset_delta=number("offsetDelta"),
        timestamp=number("timestamp"),
    )
