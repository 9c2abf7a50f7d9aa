"""Settings: precedence of sources, types, and errors."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from tests.core.configuring import SECTIONS, Colour, DiskConfig, DoorConfig, from_variable, refusal, source_of, write

from ottla.core.config import DEFAULT_SOURCE, Flag, load
from ottla.core.config_docs import field_docs

# Sources and precedence


def test_without_any_source_every_value_is_the_default() -> None:
    settings = load(SECTIONS)

    assert settings.section(DiskConfig) == DiskConfig()
    assert settings.section(DoorConfig) == DoorConfig()
    assert {one.source for one in settings.values} == {DEFAULT_SOURCE}
    assert [one.name for one in settings.values][:2] == ["log.segment_bytes", "log.index_bytes"]


def test_a_class_that_is_not_a_section_is_a_programming_error() -> None:
    with pytest.raises(KeyError, match="Colour"):
        load(SECTIONS).section(Colour)


def test_the_command_line_beats_the_environment_beats_the_file_beats_the_default(tmp_path: Path) -> None:
    file = write(tmp_path, "[log]\nsegment_bytes = 2000\nindex_bytes = 20\nflush = 'os'\n")
    environment = {"OTTLA_LOG_SEGMENT_BYTES": "3000", "OTTLA_LOG_INDEX_BYTES": "30"}
    flags = {"log.segment_bytes": Flag("--segment-bytes", 4000)}

    settings = load(SECTIONS, file=file, environment=environment, command_line=flags)

    assert source_of(settings, "log.segment_bytes") == (4000, "--segment-bytes")
    assert source_of(settings, "log.index_bytes") == (30, "OTTLA_LOG_INDEX_BYTES")
    assert source_of(settings, "log.flush") == ("os", f"{file}:4")
    assert source_of(settings, "log.preallocate") == (False, DEFAULT_SOURCE)
    assert settings.section(DiskConfig) == DiskConfig(segment_bytes=4000, index_bytes=30, flush="os")


def test_every_type_can_be_given_in_a_file(tmp_path: Path) -> None:
    file = write(
        tmp_path,
        """
        log.folder = "/srv/ottla"
        log.retention_ms = "none"
        server = { port = 1, names = ["a", "b"], colour = "blue", ratio = 1 }
        """,
    )
    settings = load(SECTIONS, file=file)

    assert settings.section(DiskConfig) == DiskConfig(folder=Path("/srv/ottla"), retention_ms=None)
    assert settings.section(DoorConfig) == DoorConfig(port=1, names=("a", "b"), colour=Colour.BLUE, ratio=1.0)
    assert source_of(settings, "server.port") == (1, f"{file}:4")


@pytest.mark.parametrize(
    ("section", "key", "text", "value"),
    [
        ("server", "port", "19_092", 19092),
        ("server", "port", " -1 ", -1),
        ("server", "names", "a, b,c", ("a", "b", "c")),
        ("server", "names", "", ()),
        ("server", "colour", "blue", Colour.BLUE),
        ("server", "ratio", "0.25", 0.25),
        ("server", "admin_password", "none", None),
        ("server", "admin_password", "No, 1_000", "No, 1_000"),
        ("log", "flush", "ack", "ack"),
        ("log", "folder", "/srv/a b", Path("/srv/a b")),
        ("log", "retention_ms", "None", None),
        *[("log", "preallocate", text, True) for text in ("true", "TRUE", "1", "yes")],
        *[("log", "preallocate", text, False) for text in ("false", "0", "no", "No")],
    ],
)
def test_every_type_can_be_given_as_text(section: str, key: str, text: str, value: object) -> None:
    assert from_variable(section, key, text) == value


@pytest.mark.parametrize(
    ("key", "text", "value"),
    [
        ("segment_bytes", "64MiB", 64 << 20),
        ("segment_bytes", "64 mib", 64 << 20),
        ("segment_bytes", "1_0KB", 10_000),
        ("segment_bytes", "2048B", 2048),
        ("segment_bytes", "2048", 2048),
        ("retention_ms", "7d", 604_800_000),
        ("retention_ms", "1h", 3_600_000),
        ("retention_ms", "90s", 90_000),
        ("retention_ms", "15ms", 15),
        ("retention_ms", "-1", -1),
    ],
)
def test_sizes_and_durations_may_have_units(tmp_path: Path, key: str, text: str, value: int) -> None:
    environment = {"OTTLA_LOG_INDEX_BYTES": "8", f"OTTLA_LOG_{key.upper()}": f" {text}"}
    assert getattr(load(SECTIONS, environment=environment).section(DiskConfig), key) == value

    file = write(tmp_path, f"[log]\nindex_bytes = 8\n{key} = '{text}'\n")
    assert getattr(load(SECTIONS, file=file).section(DiskConfig), key) == value


@pytest.mark.parametrize("text", ["64M", "64m", "1.5GiB", "MiB", "1d", "64 Mi B", "0x400", "١٢٣٤", "9" * 5000])
def test_an_ambiguous_size_is_refused(text: str) -> None:
    refused = refusal(environment={"OTTLA_LOG_SEGMENT_BYTES": text})

    assert refused.startswith("OTTLA_LOG_SEGMENT_BYTES: log.segment_bytes: expected a number of bytes")
    assert len(refused) < 300


def test_a_path_may_start_at_the_home_folder(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", "/home/ottla")

    assert from_variable("log", "folder", "~/data") == Path("/home/ottla/data")


def test_the_lifetime_of_a_token_is_not_masked() -> None:
    secret = {one.name for one in load(SECTIONS).values if one.is_secret}

    assert secret == {"server.admin_password"}


def test_the_documentation_of_a_field_is_the_text_below_it() -> None:
    assert field_docs(DiskConfig) == {
        "segment_bytes": "Roll to a new file\nonce this is reached.",
        "retention_ms": "Keep this long.",
    }


def test_a_class_without_source_has_no_documentation() -> None:
    made = type("Made", (), {"__module__": "builtins"})

    assert field_docs(made) == {}


def test_loading_defaults_imports_nothing_that_only_errors_and_files_need() -> None:
    program = (
        "import sys, ottla.core.config as c; c.load({});"
        "print(*{'dataclasses', 'difflib', 'tomllib', 'asyncio', 'socket'}.intersection(sys.modules))"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)

    assert done.stdout.split() == []
