"""requirements.lock covers what pyproject.toml asks for; `make lock` writes it."""

import tomllib
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).parent.parent
NOT_LOCKED = {"lock", "release"}  # uv, which writes the lock; twine


def wanted() -> Iterator[Requirement]:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    groups = project["dependency-groups"]
    for name, entries in {**groups, "": project["project"]["dependencies"]}.items():
        if name not in NOT_LOCKED:
            yield from (Requirement(entry) for entry in entries if isinstance(entry, str))


def locked() -> dict[str, list[Requirement]]:
    """A name may be pinned more than once, for different Python versions."""
    pins: dict[str, list[Requirement]] = defaultdict(list)
    for line in (ROOT / "requirements.lock").read_text().splitlines():
        if "==" in line:
            pin = Requirement(line.removesuffix("\\"))
            pins[canonicalize_name(pin.name)].append(pin)
    return pins


def test_every_dependency_is_pinned_to_a_version_that_it_allows() -> None:
    pins = locked()
    stale = [
        str(each)
        for each in wanted()
        if not pins[canonicalize_name(each.name)]
        or any(
            not each.specifier.contains(spec.version)
            for pin in pins[canonicalize_name(each.name)]
            for spec in pin.specifier
        )
    ]
    assert not stale, "run make lock"


def test_every_pin_has_hashes() -> None:
    pins = (ROOT / "requirements.lock").read_text().replace("\\\n", " ").splitlines()
    assert pins
    assert all("--hash=sha256:" in pin for pin in pins)
