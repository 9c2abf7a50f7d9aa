"""The Python examples of docs/schema-registry.md about serializers, run as they stand."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING

from tests.cli.documented import examples, is_as_documented

from ottla.schema.serializer import SerializerOptions

if TYPE_CHECKING:
    import pytest

    from ottla.testing.ephemeral import EphemeralBroker

DOCUMENT = Path(__file__).parents[2] / "docs" / "schema-registry.md"
PAGE = DOCUMENT.read_text()
SECTION = PAGE[PAGE.index("## Serializers") : PAGE.index("## Command line")]


def test_the_examples_run(
    broker: EphemeralBroker, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    module = ModuleType("documented")
    monkeypatch.setitem(sys.modules, "documented", module)
    for code in re.findall(r"```python\n(.*?)```", SECTION, re.DOTALL):
        placed = code.replace("http://localhost:8080/schema-registry", broker.schema_registry_url)
        placed = placed.replace("localhost:9092", broker.bootstrap_servers)
        exec(compile(placed, "example", "exec", dont_inherit=True), module.__dict__)  # noqa: S102
    assert capsys.readouterr().out == "ann\n"


def test_every_option_of_a_serializer_is_on_the_page() -> None:
    for name in SerializerOptions.__annotations__:
        assert f"| `{name}` |" in SECTION


def test_the_commands_print_the_documented_output(
    broker: EphemeralBroker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OTTLA_BROKER", broker.bootstrap_servers)
    monkeypatch.setenv("OTTLA_SCHEMA_REGISTRY", broker.schema_registry_url)
    found = examples(DOCUMENT)
    assert len(found) == 4
    for example in found:
        script = f'ottla() {{ "{sys.executable}" -m ottla "$@"; }}\n{example.command}'
        done = subprocess.run(
            ["bash", "-c", script],
            cwd=tmp_path,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=60,
            check=False,
        )
        assert is_as_documented(done.stdout, example.output), f"$ {example.command}\n{done.stdout}"
