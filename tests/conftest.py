"""What every test shares."""

from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

from ottla.testing.plugin import ottla, ottla_cluster, ottla_session, ottla_settings

# The fixtures of the kit, also where the package is on the path without being installed.
__all__ = ["ottla", "ottla_cluster", "ottla_session", "ottla_settings"]

# The same examples each time, here and in CI; `--hypothesis-profile=default --hypothesis-seed=N` looks for others.
# A machine with other work on it is slow, which says nothing about a test.
settings.register_profile(
    "ottla", derandomize=True, deadline=None, print_blob=True, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("ottla")

_SPARK = Path(__file__).parent / "spark"


@pytest.hookimpl(tryfirst=True)  # before pytest-xdist looks
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """When several processes share the tests, a file stays in one of them, and a folder of those that need Spark.

    Spark comes first, because it takes longest.
    """
    for item in items:
        group = item.path.parent if _SPARK in item.path.parents else item.path
        item.add_marker(pytest.mark.xdist_group(str(group)))
    items.sort(key=lambda item: _SPARK not in item.path.parents)
