"""The examples in docs/testing.md run as user tests."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import ottla
from ottla.broker.faults.faults import Faults
from ottla.net.listener_config import parse_listeners
from ottla.testing import EphemeralBroker, EphemeralCluster

DOCUMENT = Path(__file__).parents[2] / "docs" / "testing.md"
_EXAMPLE = re.compile(r"^```python\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def test_every_recipe_runs(tmp_path: Path) -> None:
    recipes = _EXAMPLE.findall(DOCUMENT.read_text())
    for number, recipe in enumerate(recipes):
        (tmp_path / f"test_recipe_{number}.py").write_text(recipe)
    environment = os.environ | {"PYTHONPATH": str(Path(ottla.__file__).parents[1])}
    plugin = ["-p", "ottla.testing.plugin", "-p", "no:ottla", "-p", "no:cacheprovider"]
    ended = subprocess.run(
        [sys.executable, "-m", "pytest", "-rA", *plugin, str(tmp_path)],
        cwd=tmp_path,
        env=environment,
        capture_output=True,
        text=True,
        timeout=100,
        check=False,
    )
    assert ended.returncode == 0, ended.stdout
    assert len(recipes) >= 9
    assert all(f"PASSED test_recipe_{number}.py" in ended.stdout for number in range(len(recipes))), ended.stdout


def test_everything_a_broker_for_tests_can_do_is_documented() -> None:
    text = DOCUMENT.read_text()
    inner = {"start", "stop", "broker", "call"}
    public = {name for kind in (EphemeralBroker, EphemeralCluster) for name in dir(kind) if name[0] != "_"} - inner
    faults = {name for name in dir(Faults) if not name.startswith("_")} - {"watch", "effect_on", "forget_broker"}
    assert sorted(name for name in public | faults if not re.search(rf"\b{name}\b", text)) == []


def test_both_listeners_of_a_container_are_what_a_broker_takes() -> None:
    [example] = re.findall(r"^```toml\n(.*?)^```$", DOCUMENT.read_text(), re.MULTILINE | re.DOTALL)
    outside, inside = parse_listeners(tomllib.loads(example)["net"]["listeners"])
    assert (outside.port, outside.advertised) == (9092, "localhost:9092")
    assert (inside.port, inside.advertised) == (9094, "")
