"""The Python examples of docs/schema-registry.md about serializers, run as they stand."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING

from ottla.schema.serializer import SerializerOptions

if TYPE_CHECKING:
    import pytest

    from ottla.testing.ephemeral import EphemeralBroker

PAGE = (Path(__file__).parents[2] / "docs" / "schema-registry.md").read_text()
SECTION = PAGE[PAGE.index("## Serializers") : PAGE.index("## Schemas")]


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
