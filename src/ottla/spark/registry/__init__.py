"""Values with schema ids as columns of Spark, both ways: `from_registry` and `to_registry`."""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ottla.spark.registry.functions import from_registry, to_registry

__all__ = ["from_registry", "to_registry"]

if not TYPE_CHECKING:

    def __getattr__(name: str) -> object:
        """Imported when first used: pipelines are checked without Spark."""
        if name not in __all__:
            raise AttributeError(f"module 'ottla.spark.registry' has no attribute {name!r}")
        return getattr(import_module("ottla.spark.registry.functions"), name)
