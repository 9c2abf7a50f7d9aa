"""Settings that are refused: each with its source, what would be valid, and never a secret."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import Struct
from tests.core.configuring import SECTIONS, DiskConfig, refusal, source_of, write

from ottla.core.config import Flag, load
from ottla.core.config_sources import MAX_FILE_BYTES, lines_of_keys
from ottla.core.errors import ConfigError

# Refused values, from each source


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


def test_an_overridden_value_is_still_validated(tmp_path: Path) -> None:
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
        ("log = 3", "1: log is a section; write its settings below [log]"),
        ("[[log]]\nsegment_bytes = 1", "1: log is a section; write its settings below [log]"),
        ('[log]\n"a\\u001bb" = 1', None),
    ],
)  # fmt: skip
def test_an_unknown_name_in_a_file_is_an_error_with_the_nearest_valid_one(
    tmp_path: Path, text: str, expected: str | None
) -> None:
    file = write(tmp_path, text)
    expected = expected or r"1: unknown setting 'log.a\x1bb'; no setting has a similar name"

    assert refusal(file=file) == f"{file}:{expected}"


def test_a_very_long_unknown_name_is_truncated(tmp_path: Path) -> None:
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


def test_variables_of_other_programs_are_ignored() -> None:
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


@pytest.mark.parametrize("variable", ["OTTLA_BROKER", "OTTLA_PASSWORD", "OTTLA_HTTP", "OTTLA_SCHEMA_REGISTRY"])
def test_variables_of_client_commands_are_not_settings(variable: str) -> None:
    load(SECTIONS, environment={variable: "x"})


def test_two_settings_that_share_a_variable_are_a_programming_error() -> None:
    class Deep(Struct, frozen=True):
        log_segment_bytes: int = 0

    class Shallow(Struct, frozen=True):
        segment_bytes: int = 0

    with pytest.raises(ValueError, match="share one environment variable"):
        load({"a": Deep, "a_log": Shallow})


# Many errors at once


def test_all_errors_are_reported_at_once(tmp_path: Path) -> None:
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


def test_a_consequential_error_is_not_reported() -> None:
    # index_bytes is fine with the intended segment_bytes, but not with its default.
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


def test_contradictory_defaults_are_a_programming_error() -> None:
    class Broken(Struct, frozen=True):
        a: int = 1

        def __post_init__(self) -> None:
            raise ValueError("a is never right")

    with pytest.raises(ValueError, match="never right"):
        load({"broken": Broken})


def test_an_error_that_names_no_field_names_all_given_sources() -> None:
    class Fussy(Struct, frozen=True):
        a: int = 1
        b: int = 1

        def __post_init__(self) -> None:
            if (self.a, self.b) != (1, 1):
                raise ValueError("no such combination")

    with pytest.raises(ConfigError, match=r"^OTTLA_X_B, --a: no such combination$"):
        load({"x": Fussy}, environment={"OTTLA_X_B": "2"}, command_line={"x.a": Flag("--a", 3)})


# Files that are not configurations


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
def test_a_file_that_is_not_toml_is_refused_with_the_line(tmp_path: Path, content: bytes, expected: str) -> None:
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


def test_errors_never_contain_secrets(tmp_path: Path) -> None:
    assert "1234" not in refusal(flags={"server.admin_password": Flag("--set", 1234)})
    assert refusal(flags={"server.admin_password": Flag("--set", "1234")}) == (
        "--set: server.admin_password ******** is too easy"
    )
    file = write(tmp_path, "[server]\nadmin_password = ['hunter2']")
    assert "hunter2" not in refusal(file=file)
