"""The testing kit: a real broker in every test, with fault injection."""

from importlib import import_module
from typing import TYPE_CHECKING, Final

from ottla.core.quick_imports import without_garbage_collection

if TYPE_CHECKING:
    from ottla.broker.faults.fault import Fault
    from ottla.broker.faults.filters import SeenRequest
    from ottla.core.errors import ErrorCode
    from ottla.testing.cluster_node import ClusterNode
    from ottla.testing.ephemeral import EphemeralBroker
    from ottla.testing.ephemeral import EphemeralBroker as broker  # noqa: N813 - used like a function
    from ottla.testing.ephemeral_cluster import EphemeralCluster
    from ottla.testing.ephemeral_cluster import EphemeralCluster as cluster  # noqa: N813
    from ottla.testing.pipelines import PipelineUnderTest, SampleRecord
    from ottla.testing.snapshots import Snapshot

__all__ = [
    "ClusterNode",
    "EphemeralBroker",
    "EphemeralCluster",
    "ErrorCode",
    "Fault",
    "PipelineUnderTest",
    "SampleRecord",
    "SeenRequest",
    "Snapshot",
    "broker",
    "cluster",
]

_WHERE: Final = {
    "ClusterNode": ("ottla.testing.cluster_node", "ClusterNode"),
    "EphemeralBroker": ("ottla.testing.ephemeral", "EphemeralBroker"),
    "EphemeralCluster": ("ottla.testing.ephemeral_cluster", "EphemeralCluster"),
    "ErrorCode": ("ottla.core.errors", "ErrorCode"),
    "Fault": ("ottla.broker.faults.fault", "Fault"),
    "PipelineUnderTest": ("ottla.testing.pipelines", "PipelineUnderTest"),
    "SampleRecord": ("ottla.testing.pipelines", "SampleRecord"),
    "SeenRequest": ("ottla.broker.faults.filters", "SeenRequest"),
    "Snapshot": ("ottla.testing.snapshots", "Snapshot"),
    "broker": ("ottla.testing.ephemeral", "EphemeralBroker"),
    "cluster": ("ottla.testing.ephemeral_cluster", "EphemeralCluster"),
}

if not TYPE_CHECKING:
    # Without this, type checkers would accept any name.

    def __getattr__(name: str) -> object:
        """Imported lazily: the pytest plugin is loaded in every run, also without broker tests."""
        if name not in _WHERE:
            raise AttributeError(f"module 'ottla.testing' has no attribute {name!r}")
        module, attribute = _WHERE[name]
        with without_garbage_collection():
            return getattr(import_module(module), attribute)
