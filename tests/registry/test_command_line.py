"""`ottla schema` against the registry of a test's broker."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from click.testing import CliRunner

import ottla.testing
from ottla.cli.main import program

if TYPE_CHECKING:
    from pathlib import Path

V1 = '{"type":"record","name":"R","fields":[{"name":"a","type":"int"}]}'
V2 = '{"type":"record","name":"R","fields":[{"name":"a","type":"int"},{"name":"b","type":"int","default":0}]}'


def run(url: str, *arguments: str, fails: bool = False) -> str:
    done = CliRunner().invoke(program, ["schema", *arguments, "--registry", url])
    assert (done.exit_code != 0) == fails, done.output
    return done.output


def test_schemas_are_registered_checked_compared_and_moved(tmp_path: Path) -> None:
    one, two, other = tmp_path / "one.avsc", tmp_path / "two.avsc", tmp_path / "other.avsc"
    one.write_text(V1)
    two.write_text(V2)
    other.write_text('"int"')
    exported = tmp_path / "schemas.jsonl"
    with ottla.testing.broker() as broker:
        url = broker.schema_registry_url
        assert run(url, "register", "s", str(one)) == "s: version 1, id 1\n"
        assert run(url, "check", "s", str(two)) == "compatible\n"
        assert "not compatible" in run(url, "check", "s", str(other), fails=True)
        assert "(40901)" in run(url, "register", "s", str(other), fails=True)
        run(url, "register", "s", str(two))
        assert json.loads(run(url, "show", "s")) == json.loads(V2)
        assert json.loads(run(url, "show", "--id", "1")) == json.loads(V1)
        assert '+      "name": "b",' in run(url, "diff", "s", "1", "2")
        assert [each["subject"] for each in json.loads(run(url, "list", "-o", "json"))] == ["s"]
        assert run(url, "compatibility", "s") == "BACKWARD (inherited)\n"
        assert run(url, "compatibility", "s", "full") == "FULL\n"
        assert run(url, "mode", "s", "READONLY") == "READONLY\n"
        run(url, "export", str(exported))
    with ottla.testing.broker() as broker:
        url = broker.schema_registry_url
        run(url, "register", "t", str(other))
        assert "not permitted" in run(url, "import", str(exported), fails=True)
    with ottla.testing.broker() as broker:
        url = broker.schema_registry_url
        run(url, "import", str(exported))
        assert [each["id"] for each in json.loads(run(url, "list", "-o", "json"))] == [2]
        assert run(url, "mode", "s") == "READWRITE (inherited)\n"
        assert "deleted version 1, 2" in run(url, "delete", "s", "--yes")
        assert "cannot read" in run(url, "register", "s", str(tmp_path / "missing.avsc"), fails=True)
    assert "cannot reach" in run("http://127.0.0.1:1", "list", fails=True)
