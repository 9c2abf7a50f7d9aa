"""Registries of plug-ins: built-in classes by name, and those of other packages by entry point. Imported when used."""

from __future__ import annotations

from importlib import import_module
from importlib.metadata import entry_points
from typing import TYPE_CHECKING, Generic, TypeVar

import msgspec

from ottla.core.closest import suggestion
from ottla.core.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from importlib.metadata import EntryPoint

PluginT = TypeVar("PluginT", bound=msgspec.Struct)


class UnknownPlugin(ConfigError):
    """No plug-in has this name."""


class Plugins(Generic[PluginT]):
    """The subclasses of one base class, each a msgspec struct whose tag is its name."""

    def __init__(self, what: str, base: type[PluginT], group: str, built_in: Mapping[str, str]) -> None:
        self.what = what
        """Of which the plug-ins are kinds, for error messages: sink, or source format."""
        self.base = base
        self.group = group
        self._built_in = built_in
        """By name: module:class."""

    def names(self) -> list[str]:
        """Built-in names, then those of installed packages."""
        return list(dict.fromkeys([*self._built_in, *sorted(each.name for each in entry_points(group=self.group))]))

    def built_in(self) -> Iterator[type[PluginT]]:
        """The built-in classes; imports all of them."""
        return map(self.find, self._built_in)

    def find(self, name: str) -> type[PluginT]:
        """The class of this name. Raises UnknownPlugin, or ConfigError if the plug-in cannot be used."""
        place = self._built_in.get(name)
        if place is not None:
            module, _, class_name = place.partition(":")
            return getattr(import_module(module), class_name)  # type: ignore[no-any-return]  # checked by a test
        found = list(entry_points(group=self.group, name=name))
        if not found:
            known = self.names()
            raise UnknownPlugin(f"{name!r} is not one of {', '.join(known)}{suggestion(name, known)}")
        if len({each.value for each in found}) > 1:
            packages = " and ".join(sorted(map(_origin, found)))
            raise ConfigError(f"{packages} both declare the {self.what} {name}; uninstall one of them")
        return self._loaded(found[0])

    def _loaded(self, declared: EntryPoint) -> type[PluginT]:
        where = f"the {self.what} {declared.name} of {_origin(declared)}"
        try:
            plugin = declared.load()
        except Exception as failed:
            reason = f"{type(failed).__name__}: {failed}".partition("\n")[0]
            raise ConfigError(f"{where} could not be imported: {reason}") from failed
        base = f"{self.base.__module__}.{self.base.__qualname__}"
        if not (isinstance(plugin, type) and issubclass(plugin, self.base)):
            raise ConfigError(f"{where} must be a subclass of {base}, not {plugin!r}")
        tag = plugin.__struct_config__.tag
        if tag != declared.name:
            raise ConfigError(
                f'{where} has the tag {tag!r}; declare it as class {plugin.__name__}(…, tag="{declared.name}")'
            )
        return plugin


def _origin(declared: EntryPoint) -> str:
    package = declared.dist.name if declared.dist is not None else "an unknown package"
    return f"{package} ({declared.value})"
