"""SIGHUP: reload certificates and keys now, and report settings that need a restart."""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING, Final

from ottla.core.errors import OttlaError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from ottla.broker.broker import Broker
    from ottla.cli.workers.plan import Configs

_logger: Final = logging.getLogger("ottla.serve")


_work: Final[set[asyncio.Task[None]]] = set()


def reload(broker: Broker, running: Configs, load: Callable[[], Configs] | None) -> None:
    """`load` reads the configuration again; None in a worker, whose supervisor has read it."""
    for port in broker.listener.ports:
        if port.tls is not None:
            port.tls.reload_if_changed()
    if broker.key_rotation is not None:
        task = asyncio.ensure_future(broker.key_rotation.check())
        _work.add(task)
        task.add_done_callback(_work.discard)
    _logger.info("SIGHUP: reloaded certificates and keys that have changed")
    if load is None:
        return
    try:
        changed = list(changed_settings(running, load()))
    except OttlaError as wrong:
        _logger.error("SIGHUP: invalid configuration, keeping the current one: %s", wrong)
        return
    if changed:
        _logger.warning("SIGHUP: restart the broker to apply changed settings: %s", ", ".join(changed))


def changed_settings(before: Configs, after: Configs) -> Iterator[str]:
    """The names of settings with other values, such as `log.segment_bytes`."""
    sections: list[tuple[str, object, object]] = [
        *zip(before.settings._fields, before.settings, after.settings, strict=True)
    ]
    others = zip(before._fields[1:], before[1:], after[1:], strict=True)
    sections += [("schema_registry" if name == "registry" else name, old, new) for name, old, new in others]
    for section, old, new in sections:
        for name in getattr(type(old), "__struct_fields__", ()):
            if getattr(old, name) != getattr(new, name, None):
                yield f"{section}.{name}"
