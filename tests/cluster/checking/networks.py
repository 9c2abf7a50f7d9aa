"""A network namespace per node, joined by a bridge, so that any link can be cut."""

from __future__ import annotations

import os
import subprocess
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

_SUBNET: Final = "10.197.{}"
_HOST_NUMBER: Final = 254


class NoNamespaces(Exception):
    """The message names the missing requirement."""


def _ip(*arguments: str) -> str:
    done = subprocess.run(["ip", *arguments], capture_output=True, text=True, check=False)
    if done.returncode:
        raise NoNamespaces(f"ip {' '.join(arguments)}: {done.stderr.strip()}")
    return done.stdout


def _free_subnet() -> str:
    """One that neither a parallel run nor the remains of a killed one use."""
    used, first = _ip("-o", "-4", "address"), os.getpid()
    subnets = (_SUBNET.format((first + step) % 250) for step in range(250))
    return next(subnet for subnet in subnets if f" {subnet}." not in used)


class Way(NamedTuple):
    """One direction of a link: from a node to an address."""

    number: int
    address: str


class Network:
    """The test process and shared services such as ZooKeeper are at `host`."""

    def __init__(self, count: int) -> None:
        if os.geteuid() != 0:
            raise NoNamespaces("network namespaces need root")
        self._subnet = _free_subnet()
        self._prefix = f"ot{os.getpid()}"
        self.host = f"{self._subnet}.{_HOST_NUMBER}"
        self._numbers = range(1, count + 1)

    def __enter__(self) -> Network:
        try:
            _ip("link", "add", self._bridge, "type", "bridge")
            _ip("address", "add", f"{self.host}/24", "dev", self._bridge)
            _ip("link", "set", self._bridge, "up")
            for number in self._numbers:
                self._add(number)
        except NoNamespaces:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        for number in self._numbers:
            subprocess.run(["ip", "netns", "delete", self._namespace(number)], capture_output=True, check=False)
        subprocess.run(["ip", "link", "delete", self._bridge], capture_output=True, check=False)

    @property
    def _bridge(self) -> str:
        return f"{self._prefix}br"

    def _namespace(self, number: int) -> str:
        return f"{self._prefix}n{number}"

    def _add(self, number: int) -> None:
        namespace, outside, inside = self._namespace(number), f"{self._prefix}v{number}", "eth0"
        _ip("netns", "add", namespace)
        _ip("link", "add", outside, "type", "veth", "peer", "name", inside, "netns", namespace)
        _ip("link", "set", outside, "master", self._bridge, "up")
        _ip("-n", namespace, "address", "add", f"{self.address(number)}/24", "dev", inside)
        _ip("-n", namespace, "link", "set", inside, "up")
        _ip("-n", namespace, "link", "set", "lo", "up")

    def address(self, number: int) -> str:
        return f"{self._subnet}.{number}"

    def inside(self, number: int) -> tuple[str, ...]:
        """A command prefix that runs a command in a node's namespace."""
        return ("ip", "netns", "exec", self._namespace(number))

    @contextmanager
    def cut(self, ways: Sequence[Way]) -> Iterator[None]:
        """Drop all packets in these directions inside the block."""
        for number, address in ways:
            _ip("-n", self._namespace(number), "route", "add", "blackhole", f"{address}/32")
        try:
            yield
        finally:
            for number, address in ways:
                _ip("-n", self._namespace(number), "route", "delete", "blackhole", f"{address}/32")

    def ways_between(self, one: int, others: Iterable[int]) -> list[Way]:
        """Both directions."""
        return [way for other in others for way in (Way(one, self.address(other)), Way(other, self.address(one)))]
