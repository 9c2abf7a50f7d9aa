from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from typing import Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ottla.core.config import DEFAULT_SOURCE, Flag, Settings, load
from ottla.core.config_docs import field_docs
from ottla.core.config_sources import MAX_FILE_BYTES, lines_of_keys
from ottla.core.errors import ConfigError


class Colour(Enum):
    RED = "red"
    BLUE = "blue"


@dataclass(frozen=True, slots=True, kw_only=True)
class DiskConfig:
    segment_bytes: int = 1 << 30
    """Roll to a new file
    once this is reached."""

    index_bytes: int = 10 << 20
    retention_ms: int | None = 604_800_000
    """Keep this long."""
    flush: Literal["os", "interval", "ack"] = "interval"
    folder: Path = Path("data")
    preallocate: bool = False

    def __post_init__(self) -> None:
        if self.segment_bytes < 1024:
            raise ValueError(f"segment_bytes must be at least 1024, got {self.segment_bytes}")
        if self.index_bytes < 8:
            raise ValueError(f"index_bytes must be at least 8, got {self.index_bytes}")
        if self.index_bytes > self.segment_bytes:
            raise ValueError("index_bytes must not be larger than segment_bytes")


@dataclass(frozen=True, slots=True, kw_only=True)
class DoorConfig:
    port: int = 9092
    names: tuple[str, ...] = ()
    colour: Colour = Colour.RED
    ratio: float = 0.5
    admin_password: str | None = None
    token_lifetime_ms: int = 1000

    def __post_init__(self) -> None:
        if self.admin_password == "1234":
            raise ValueError(f"admin_password {self.admin_password} is too easy")


SECTIONS: dict[str, type] = {"log": DiskConfig, "server": DoorConfig}


def write(folder: Path, text: str | bytes) -> Path:
    file = folder / "ottla.toml"
    file.write_bytes(text.encode() if isinstance(text, str) else text)
    return file


def refusal(
    *,
    file: Path | None = None,
    environment: dict[str, str] | None = None,
    flags: dict[str, Flag] | None = None,
) -> str:
    with pytest.raises(ConfigError) as refused:
        load(SECTIONS, file=file, environment=environment, command_line=flags)
    return str(refused.value)


def source_of(settings: Settings, name: str) -> tuple[object, str]:
    [(value, source)] = [(one.value, one.source) for one in settings.values if one.name == name]
    return value, source


def from_variable(section: str, key: str, text: str) -> object:
    settings = load(SECTIONS, environment={f"OTTLA_{section}_{key}".upper(): text})
    return getattr(settings.configs[section], key)


# What is given, and what is not


def test_without_any_source_every_value_is_the_default() -> None:
    settings = load(SECTIONS)

    assert settings.section(DiskConfig) == DiskConfig()
    assert settings.section(DoorConfig) == DoorConfig()
    assert {one.source for one in settings.values} == {DEFAULT_SOURCE}
    assert [one.name for one in settings.values][:2] == ["log.segment_bytes", "log.index_bytes"]


def test_a_class_that_is_no_section_is_our_own_mistake() -> None:
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
def test_a_size_that_is_not_clear_is_refused(text: str) -> None:
    refused = refusal(environment={"OTTLA_LOG_SEGMENT_BYTES": text})

    assert refused.startswith("OTTLA_LOG_SEGMENT_BYTES: log.segment_bytes: expected a number of bytes")
    assert len(refused) < 300


def test_a_path_may_start_at_the_home_folder(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", "/home/ottla")

    assert from_variable("log", "folder", "~/data") == Path("/home/ottla/data")


# What is refused, from each source


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("port = '9092'", "server.port: expected a whole number, got '9092'"),
        ("port = true", "server.port: expected a whole number, got True"),
        ("port = 9092.0", "server.port: expected a whole number, got 9092.0"),
        ("ratio = nan", "server.ratio: expected a number, got nan"),
        ("names = 'a,b'", "server.names: expected a list, each item text, got 'a,b'"),
        ("names = ['a', 1]", "server.names: expected a list, each item text, got ['a', 1]"),
        ("colour = 'green'", "server.colour: expected one of red, blue, got 'green'"),
        ("admin_password = 5", "server.admin_password: expected text or none"),
        ("port = { a = 1 }", "server.port: expected a whole number, got {'a': 1}"),
    ],
)
def test_a_wrong_type_in_a_file_names_the_line_and_what_was_expected(tmp_path: Path, line: str, expected: str) -> None:
    file = write(tmp_path, f"# comment\n[server]\n{line}\n")

    assert refusal(file=file) == f"{file}:3: {expected}"


@pytest.mark.parametrize(
    ("section", "key", "text", "expected"),
    [
        ("server", "port", "http", "expected a whole number, got 'http'"),
        ("server", "port", "", "expected a whole number, got ''"),
        ("server", "port", "1.0", "expected a whole number, got '1.0'"),
        ("server", "ratio", "inf", "expected a number, got 'inf'"),
        ("server", "names", "a\udcff", r"expected a list, each item text, got 'a\udcff'"),
        ("log", "flush", "never", "expected one of os, interval, ack, got 'never'"),
        ("log", "preallocate", "maybe", "expected true or false, got 'maybe'"),
        ("log", "folder", "", "expected a path, got ''"),
        ("log", "folder", "a\0b", r"expected a path, got 'a\x00b'"),
        ("log", "retention_ms", "never", None),
    ],
)
def test_wrong_text_names_the_variable_or_the_flag(section: str, key: str, text: str, expected: str | None) -> None:
    variable = f"OTTLA_{section}_{key}".upper()
    expected = expected or (
        "expected a number of milliseconds (such as 5000, or \"5s\" with a unit) or none, got 'never'"
    )
    name = f"{section}.{key}"

    assert refusal(environment={variable: text}) == f"{variable}: {name}: {expected}"
    assert refusal(flags={name: Flag("--set", text)}) == f"--set: {name}: {expected}"


@given(
    st.sampled_from([one.name for one in load(SECTIONS).values]),
    st.text() | st.from_regex(r"[0-9]+ ?[a-zA-Z]+"),
)
def test_any_text_is_a_value_or_a_clear_error(name: str, text: str) -> None:
    try:
        load(SECTIONS, command_line={name: Flag("--set", text)})
    except ConfigError as refused:
        assert str(refused).startswith(f"--set: {name}")  # noqa: PT017


@given(st.binary() | st.text(alphabet="[]log.flush ='\"\n{},#é").map(str.encode))
def test_any_file_is_settings_or_a_clear_error(tmp_path_factory: pytest.TempPathFactory, content: bytes) -> None:
    file = write(tmp_path_factory.getbasetemp(), content)
    try:
        load(SECTIONS, file=file)
    except ConfigError as refused:
        assert str(file) in str(refused)  # noqa: PT017


def test_a_typed_value_from_a_flag_must_have_the_right_type() -> None:
    refused = refusal(flags={"server.port": Flag("--port", 3.5)})

    assert refused == "--port: server.port: expected a whole number, got 3.5"


def test_a_value_that_the_class_refuses_names_its_source(tmp_path: Path) -> None:
    file = write(tmp_path, "[log]\n\nsegment_bytes = 5\n")

    assert refusal(file=file) == f"{file}:3: log.segment_bytes must be at least 1024, got 5"


def test_two_values_that_contradict_each_other_name_both_sources(tmp_path: Path) -> None:
    file = write(tmp_path, "[log]\nsegment_bytes = 2000\n")
    refused = refusal(file=file, environment={"OTTLA_LOG_INDEX_BYTES": "3000"})

    assert refused == (f"OTTLA_LOG_INDEX_BYTES, {file}:2: log.index_bytes must not be larger than log.segment_bytes")


def test_a_value_is_wrong_even_where_a_higher_source_covers_it(tmp_path: Path) -> None:
    file = write(tmp_path, "[log]\nsegment_bytes = true\n")

    assert f"{file}:2" in refusal(file=file, flags={"log.segment_bytes": Flag("--set", "4096")})


# Names that are not settings


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("[log]\nsegmnt_bytes = 1", "2: unknown setting log.segmnt_bytes; did you mean log.segment_bytes?"),
        ("[log]\nsegment-bytes = 1", "2: unknown setting log.segment-bytes; did you mean log.segment_bytes?"),
        ("[log]\nsegment.bytes = 1", "2: unknown setting log.segment.bytes; did you mean log.segment_bytes?"),
        ("[server]\nflush = 'os'", "2: unknown setting server.flush; did you mean log.flush?"),
        ("segment_bytes = 1", "1: unknown setting segment_bytes; did you mean log.segment_bytes?"),
        ('"log.port" = 1', '1: unknown setting "log.port"; did you mean server.port?'),
        ("[log]\nxyzzy = 1", "2: unknown setting log.xyzzy; no setting has a similar name"),
        ("\n[lgo]\nsegment_bytes = 1", "2: unknown section [lgo]; did you mean [log]?"),
        ("[xyzzy]\na = 1", "1: unknown section [xyzzy]; the sections are log, server"),
        ("\nlgo.flush = 1", "2: unknown section [lgo]; did you mean [log]?"),
        ("log = 3", "1: log is a section: write its settings below a line [log]"),
        ("[[log]]\nsegment_bytes = 1", "1: log is a section: write its settings below a line [log]"),
        ('[log]\n"a\\u001bb" = 1', None),
    ],
)  # fmt: skip
def test_an_unknown_name_in_a_file_is_an_error_with_the_nearest_valid_one(
    tmp_path: Path, text: str, expected: str | None
) -> None:
    file = write(tmp_path, text)
    expected = expected or r"1: unknown setting 'log.a\x1bb'; no setting has a similar name"

    assert refusal(file=file) == f"{file}:{expected}"


def test_an_unknown_name_without_end_is_cut(tmp_path: Path) -> None:
    assert len(refusal(file=write(tmp_path, f"[log]\n{'k' * 900_000} = 1"))) < 300


def test_an_unknown_variable_is_an_error_with_the_nearest_valid_one() -> None:
    assert refusal(environment={"OTTLA_LOG_SEGMENT_BYTE": "1"}) == (
        "environment: unknown setting OTTLA_LOG_SEGMENT_BYTE; did you mean OTTLA_LOG_SEGMENT_BYTES?"
    )
    assert refusal(environment={"OTTLA_XYZZY": "1"}) == (
        "environment: unknown setting OTTLA_XYZZY; no setting has a similar name"
    )


def test_an_unknown_name_on_the_command_line_is_an_error_with_the_nearest_valid_one() -> None:
    assert refusal(flags={"log.flsh": Flag("--set", "os")}) == (
        "--set: unknown setting log.flsh; did you mean log.flush?"
    )


def test_variables_that_are_not_ours_to_judge_are_left_alone() -> None:
    load(
        SECTIONS,
        environment={
            "OTTLA_CONFIG": "elsewhere.toml",
            "PATH": "/bin",
            "OTTLA": "x",
            # What Kubernetes adds to each pod beside a Service named ottla.
            "OTTLA_SERVICE_HOST": "10.0.0.1",
            "OTTLA_SERVICE_PORT": "9092",
            "OTTLA_SERVICE_PORT_KAFKA": "9092",
            "OTTLA_PORT": "tcp://10.0.0.1:9092",
            "OTTLA_PORT_9092_TCP": "tcp://10.0.0.1:9092",
            "OTTLA_HEADLESS_PORT_9092_TCP_ADDR": "10.0.0.1",
        },
    )
    assert "did you mean OTTLA_SERVER_PORT?" in refusal(environment={"OTTLA_SERVR_PORT": "9092"})


def test_two_settings_that_would_share_a_variable_are_our_own_mistake() -> None:
    @dataclass(frozen=True)
    class Deep:
        log_segment_bytes: int = 0

    @dataclass(frozen=True)
    class Shallow:
        segment_bytes: int = 0

    with pytest.raises(ValueError, match="share one environment variable"):
        load({"a": Deep, "a_log": Shallow})


# Many errors at once


def test_everything_that_is_wrong_is_reported_at_once(tmp_path: Path) -> None:
    file = write(tmp_path, "[log]\nsegment_bytes = 5\nindex_bytes = 7\nflsh = 'os'\n[server]\nport = 'x'\n")
    refused = refusal(file=file, environment={"OTTLA_LOG_FLUSH": "never"}, flags={"srver.port": Flag("--set", "1")})

    assert refused.splitlines() == [
        "6 settings cannot be used:",
        f"  {file}:4: unknown setting log.flsh; did you mean log.flush?",
        "  --set: unknown setting srver.port; did you mean server.port?",
        "  OTTLA_LOG_FLUSH: log.flush: expected one of os, interval, ack, got 'never'",
        f"  {file}:2: log.segment_bytes must be at least 1024, got 5",
        f"  {file}:3: log.index_bytes must be at least 8, got 7",
        f"  {file}:6: server.port: expected a whole number, got 'x'",
    ]


def test_an_error_that_only_follows_from_another_is_not_reported() -> None:
    # index_bytes is fine beside the segment_bytes that was meant, but not beside its default.
    flags = {"log.segment_bytes": Flag("--set", "4096GB"), "log.index_bytes": Flag("--set", str(1 << 31))}
    assert load(SECTIONS, command_line=flags).section(DiskConfig).index_bytes == 1 << 31

    flags["log.segment_bytes"] = Flag("--set", "4096G")
    refused = refusal(flags=flags)
    assert refused.startswith("--set: log.segment_bytes: expected")
    assert "index_bytes" not in refused


def test_a_file_full_of_unknown_keys_is_cut_short_and_refused_quickly(tmp_path: Path) -> None:
    file = write(tmp_path, "[log]\n" + "".join(f"key_{number} = 1\n" for number in range(50_000)))
    lines = refusal(file=file).splitlines()

    assert len(lines) == 22
    assert lines[0] == "50000 settings cannot be used:"
    assert lines[-1] == "  and 49980 more"


def test_defaults_that_contradict_each_other_are_our_own_mistake() -> None:
    @dataclass(frozen=True)
    class Broken:
        a: int = 1

        def __post_init__(self) -> None:
            raise ValueError("a is never right")

    with pytest.raises(ValueError, match="never right"):
        load({"broken": Broken})


def test_an_objection_that_names_no_field_names_all_that_was_given() -> None:
    @dataclass(frozen=True)
    class Fussy:
        a: int = 1
        b: int = 1

        def __post_init__(self) -> None:
            if (self.a, self.b) != (1, 1):
                raise ValueError("no such combination")

    with pytest.raises(ConfigError, match=r"^OTTLA_X_B, --a: no such combination$"):
        load({"x": Fussy}, environment={"OTTLA_X_B": "2"}, command_line={"x.a": Flag("--a", 3)})


# Files that are no configuration


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        (b"[log]\nsegment_bytes = = 1\n", ":2: not valid TOML: Invalid value"),
        (b"[log]\nflush = 'os'\nflush = 'os'\n", ":3: not valid TOML: Cannot overwrite a value"),
        (b"[log]\nflush = '''os", ": not valid TOML: Expected \"'''\" at the end of the file"),
        (b"[log]\nx = " + b"9" * 5000, ": not valid TOML: Exceeds the limit"),
        (b"x = " + b"[" * 100_000, ": not valid TOML: nested too deeply"),
        (b"[log]\n\n# \xff\n", ":3: not UTF-8 text (byte 0xff)"),
        ("[log]\n".encode("utf-16"), ":1: not UTF-8 text (byte 0xff)"),
        (b"#" * (MAX_FILE_BYTES + 1), f": larger than {MAX_FILE_BYTES} bytes, so not a configuration file"),
        (b"\0", ":1: not valid TOML: "),
    ],
)
def test_a_file_that_is_not_toml_is_refused_with_the_place(tmp_path: Path, content: bytes, expected: str) -> None:
    file = write(tmp_path, content)

    assert refusal(file=file).startswith(f"{file}{expected}")


def test_a_file_that_cannot_be_read_is_refused_with_the_reason(tmp_path: Path) -> None:
    assert refusal(file=tmp_path / "no.toml") == f"{tmp_path}/no.toml: cannot be read: No such file or directory"
    assert refusal(file=tmp_path) == f"{tmp_path}: cannot be read: Is a directory"
    assert refusal(file=Path("a\0b")).endswith("cannot be read: embedded null byte")


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read every file")
def test_a_file_without_permission_is_refused_with_the_reason(tmp_path: Path) -> None:
    file = write(tmp_path, "")
    file.chmod(0)

    assert refusal(file=file) == f"{file}: cannot be read: Permission denied"


def test_an_endless_file_is_not_read_to_its_end() -> None:
    assert refusal(file=Path("/dev/zero")).startswith("/dev/zero: larger than")


def test_a_file_from_windows_is_read(tmp_path: Path) -> None:
    file = write(tmp_path, b"\xef\xbb\xbf[log]\r\nflush = 'ack'\r\n")

    assert source_of(load(SECTIONS, file=file), "log.flush") == ("ack", f"{file}:2")


def test_an_empty_file_is_a_file(tmp_path: Path) -> None:
    assert load(SECTIONS, file=write(tmp_path, "")).section(DiskConfig) == DiskConfig()


def test_the_line_of_a_key_is_left_out_when_some_text_looks_like_it() -> None:
    text = "[log]\na = '''\nb = 1\n'''\nb = 2\n[ 'x' . y ]\n'z' = 1 # [log]\n"

    assert lines_of_keys(text) == {"log": 1, "log.a": 2, "x.y": 6, "x.y.z": 7}


# Secrets and documentation


def test_a_secret_never_stands_in_an_error(tmp_path: Path) -> None:
    assert "1234" not in refusal(flags={"server.admin_password": Flag("--set", 1234)})
    assert refusal(flags={"server.admin_password": Flag("--set", "1234")}) == (
        "--set: server.admin_password ******** is too easy"
    )
    file = write(tmp_path, "[server]\nadmin_password = ['hunter2']")
    assert "hunter2" not in refusal(file=file)


def test_the_lifetime_of_a_token_is_no_secret() -> None:
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
        "print(*{'difflib', 'msgspec', 'tomllib', 'asyncio', 'socket'}.intersection(sys.modules))"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)

    assert done.stdout.split() == []
