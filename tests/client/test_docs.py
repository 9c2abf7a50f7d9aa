"""docs/client.md: its examples run, and it is complete."""

from __future__ import annotations

import ast
import asyncio
import inspect
from typing import TYPE_CHECKING, Any

import pytest

import ottla
from ottla.client import errors
from ottla.client.admin.admin import Admin
from ottla.client.config import ClientConfig, ConsumerConfig, ProducerConfig
from ottla.client.security import Security

from .documented import DOCUMENT, Example, examples, table_of

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.parametrize("example", examples(), ids=lambda example: f"line {example.line}")
def test_an_example_runs(
    example: Example, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    async def scenario() -> None:
        async with ottla.Broker() as broker:
            code = example.code.replace("localhost:9092", broker.bootstrap_servers)
            # As `python -m asyncio` does it.
            compiled = compile(code, str(DOCUMENT), "exec", flags=ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)
            result = eval(compiled, {"__name__": "example"})  # noqa: S307
            if inspect.iscoroutine(result):
                await result

    monkeypatch.chdir(tmp_path)
    asyncio.run(asyncio.wait_for(scenario(), 60))
    assert ("print(" in example.code) == bool(capsys.readouterr().out)


@pytest.mark.parametrize("config", [ClientConfig, ProducerConfig, ConsumerConfig, Security])
def test_every_option_is_documented_with_its_default(config: type[Any]) -> None:
    assert table_of(config) in DOCUMENT.read_text()


def test_every_error_is_documented() -> None:
    kinds = [
        name
        for name, kind in vars(errors).items()
        if isinstance(kind, type) and issubclass(kind, errors.ClientError) and kind is not errors.ClientError
    ]
    text = DOCUMENT.read_text()
    assert [name for name in kinds if f"`{name}`" not in text] == []


def test_every_admin_method_is_documented() -> None:
    text = DOCUMENT.read_text()
    assert [name for name in dir(Admin) if not name.startswith("_") and f"`{name}`" not in text] == []
