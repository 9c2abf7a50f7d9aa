"""The commands of docs/schema-registry.md, run as they stand, and its table of paths."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from tests.rest.serving import HttpBroker

from ottla.http.registry.served import SERVED
from ottla.http.registry_config import SchemaRegistryConfig

if TYPE_CHECKING:
    from collections.abc import Iterator

PAGE = (Path(__file__).parents[2] / "docs" / "schema-registry.md").read_text()


def commands() -> Iterator[str]:
    for block in re.findall(r"```sh\n(.*?)```", PAGE, re.DOTALL):
        yield from re.findall(r"curl.*?(?=\ncurl|\Z)", block.strip(), re.DOTALL)


@pytest.mark.skipif(shutil.which("curl") is None, reason="there is no curl")
def test_every_command_of_the_page_works_as_documented(tmp_path: Path) -> None:
    with HttpBroker(tmp_path) as served:
        for command in commands():
            script = f"set -o pipefail; O={served.url}\n{command.replace('curl -s', 'curl -sS')}"
            done = subprocess.run(["bash", "-c", script], capture_output=True, text=True, timeout=30, check=False)
            assert done.returncode == 0, (command, done.stderr)
            assert "error_code" not in done.stdout, (command, done.stdout)


def test_every_path_is_on_the_page() -> None:
    for served in SERVED:
        assert f"`{served.method} {served.path.removesuffix('/') or '/'}`" in PAGE, served


def test_every_setting_is_on_the_page() -> None:
    for field in SchemaRegistryConfig.__struct_fields__:
        assert f"`schema_registry.{field}`" in PAGE
