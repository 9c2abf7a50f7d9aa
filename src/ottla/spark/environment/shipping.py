"""Ships the package and its dependencies to the workers of a cluster, where nothing need be installed.

Each package becomes an archive that Spark unpacks under the package's own name in a folder that workers import from.
"""

from __future__ import annotations

import importlib.metadata
import tempfile
import zipfile
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Final

import ottla

if TYPE_CHECKING:
    from collections.abc import Iterator

_NEEDED: Final = ("cramjam", "fastcrc", "msgspec", "obstore", "uvloop")
"""What is imported there besides pyarrow, which Spark itself needs; those of them that are installed here."""
_CARRIED: Final = (".py", ".so", ".pyd")
"""Not the sources of what is compiled, nor pages of the console."""


@cache
def archives() -> tuple[str, ...]:
    """Paths in the form that Spark takes, `file.zip#name`. They are there until the program ends."""
    folder = Path(_scratch().name)
    ours = Path(ottla.__file__).parent
    folders = {ours.name: ours, "pyspark_ottla": ours.with_name("pyspark_ottla"), **dict(_dependencies())}
    return tuple(f"{_zipped(path, folder / f'{name}.zip')}#{name}" for name, path in folders.items())


@cache
def _scratch() -> tempfile.TemporaryDirectory[str]:
    return tempfile.TemporaryDirectory(prefix="ottla-shipped-", ignore_cleanup_errors=True)


def _dependencies() -> Iterator[tuple[str, Path]]:
    for name in _NEEDED:
        try:
            distribution = importlib.metadata.distribution(name)
        except importlib.metadata.PackageNotFoundError:
            continue
        tops = {file.parts[0] for file in distribution.files or () if len(file.parts) > 1}
        for top in sorted(tops):
            if not top.endswith(".dist-info"):
                yield top, Path(str(distribution.locate_file(top)))


def _zipped(package: Path, target: Path) -> Path:
    with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as made:
        for path in sorted(package.rglob("*")):
            if path.suffix in _CARRIED:
                made.write(path, path.relative_to(package))
    return target
