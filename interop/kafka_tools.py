"""Apache Kafka's own tools, run on files of any origin."""

import subprocess
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from interop.dump_parser import StdoutParser, problems_on_stderr
from interop.dump_types import Dump, Problem, ProblemKind
from interop.kafka_artifacts import KafkaArtifacts

DUMP_LOG_SEGMENTS = "org.apache.kafka.tools.DumpLogSegments"
ENTRY_BYTES = {".index": 8, ".timeindex": 12, ".txnindex": 34}
SANITY_CHECKED = (".index", ".timeindex")
DUMPABLE = (".log", ".index", ".timeindex", ".txnindex", ".snapshot")
ARGUMENT_BYTES = 100_000  # Linux takes 128 KiB in one argument
TOOL_TIMEOUT_S = 120


@dataclass(frozen=True, slots=True)
class ToolRun:
    exit_code: int
    stdout: str
    stderr: str


def run_tool(
    kafka: KafkaArtifacts, main_class: str, *arguments: str, given: str = "", java_options: Sequence[str] = ()
) -> ToolRun:
    done = subprocess.run(
        kafka.command(main_class, arguments, "-Xmx256m", *java_options),
        capture_output=True,
        timeout=TOOL_TIMEOUT_S,
        check=False,
        input=given.encode(),
    )
    return ToolRun(done.returncode, done.stdout.decode(errors="replace"), done.stderr.decode(errors="replace"))


def segment_files(*folders: Path) -> list[Path]:
    """All that DumpLogSegments can read of these partition folders."""
    return sorted(file for folder in folders for file in folder.iterdir() if file.suffix in DUMPABLE)


def dump(kafka: KafkaArtifacts, files: Sequence[Path], *, print_data: bool = False) -> Dump:
    """Read every file to the last record and entry, and let the tool compare the indexes with their logs.

    Two runs, because the sanity check that decides whether a starting broker rebuilds an index replaces the
    comparison of its entries. Beware: the tool shortens an offset index whose length is not a multiple of 8, and
    leaves an empty offset index where a time index has none beside it.
    """
    problems = list(_missing_indexes(files))
    # Counted before the tool has a chance to change a file.
    slots = {file: -(-file.stat().st_size // ENTRY_BYTES[file.suffix]) for file in files if file.suffix in ENTRY_BYTES}
    parser = StdoutParser()
    exit_code = 0
    option = "--print-data-log" if print_data else "--deep-iteration"
    checked = [file for file in files if file.suffix in SANITY_CHECKED]
    for run in [*_runs(kafka, checked, "--index-sanity-check"), *_runs(kafka, files, option)]:
        parser.parse(run.stdout)
        if run.exit_code == 0:
            problems += problems_on_stderr(run.stderr)
        else:
            problems.append(Problem(ProblemKind.CRASHED, parser.file, run.stderr.strip()))
            exit_code = run.exit_code
    problems += parser.problems
    if exit_code == 0:
        problems += _unread_entries(slots, parser)
    return Dump(
        exit_code=exit_code,
        problems=tuple(problems),
        batches={file: tuple(found) for file, found in parser.batches.items()},
        offset_entries={file: tuple(found) for file, found in parser.offset_entries.items()},
        time_entries={file: tuple(found) for file, found in parser.time_entries.items()},
        aborted={file: tuple(found) for file, found in parser.aborted.items()},
        producers={file: tuple(found) for file, found in parser.producers.items()},
    )


def _missing_indexes(files: Sequence[Path]) -> Iterator[Problem]:
    for file in files:
        for suffix in SANITY_CHECKED:
            if file.suffix == ".log" and not file.with_suffix(suffix).exists():
                yield Problem(ProblemKind.MISSING_INDEX, file, f"there is no {suffix}")


def _runs(kafka: KafkaArtifacts, files: Sequence[Path], option: str) -> Iterator[ToolRun]:
    for names in _portions([str(file) for file in files]):
        yield run_tool(kafka, DUMP_LOG_SEGMENTS, option, "--files", names)


def _portions(names: list[str]) -> Iterator[str]:
    portion = ""
    for name in names:
        assert "," not in name, f"DumpLogSegments cannot take a comma in a file's name: {name}"
        if len(portion) + len(name) >= ARGUMENT_BYTES:
            yield portion
            portion = ""
        portion = f"{portion},{name}" if portion else name
    if portion:
        yield portion


def _unread_entries(slots: dict[Path, int], parser: StdoutParser) -> Iterator[Problem]:
    """The tool skips an entry cut short, and stops at one for the base offset, which it takes for a hole."""
    entries: dict[Path, int] = {}
    for by_file in (parser.offset_entries, parser.time_entries, parser.aborted):
        entries |= {file: len(found) for file, found in by_file.items()}
    for file, count in slots.items():
        read = entries[file]
        if read < count:
            yield Problem(ProblemKind.UNREAD_ENTRIES, file, f"{read} of {count} entries were read")
