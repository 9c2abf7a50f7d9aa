"""Settings and hooks shared by all tests."""

from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

from ottla.testing.plugin import ottla, ottla_cluster, ottla_session, ottla_settings

# The fixtures of the kit, also where the package is on the path without being installed.
__all__ = ["ottla", "ottla_cluster", "ottla_session", "ottla_settings"]

# The same examples each time, here and in CI; `--hypothesis-profile=default --hypothesis-seed=N` looks for others.
# A busy machine is slow, which says nothing about a test.
settings.register_profile(
    "ottla", derandomize=True, deadline=None, print_blob=True, suppress_health_check=[HealthCheck.too_slow]
)
settings.register_profile(
    "long", max_examples=3000, stateful_step_count=60, deadline=None, suppress_health_check=list(HealthCheck)
)
settings.load_profile("ottla")

_TESTS = Path(__file__).parent
_SPARK = _TESTS / "spark"
_SLOW_FOLDERS = ("clients", "cluster", "faults", "hostile", "security", "simulation", "spark", "workers")
_SLOW_FILES = (
    "test_crash.py",
    "test_docs.py",
    "test_log_model.py",
    "test_mixed_groups.py",
    "test_restarts.py",
    "test_without_compiler.py",
    "test_worked_examples.py",
)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark tests that `make unit` leaves out, and run the longest first: Spark, and of that the pipelines."""
    for item in items:
        if item.path.name in _SLOW_FILES or any(_TESTS / folder in item.path.parents for folder in _SLOW_FOLDERS):
            item.add_marker("slow")
    items.sort(key=lambda item: (_SPARK not in item.path.parents, _SPARK / "pipelines" not in item.path.parents))
