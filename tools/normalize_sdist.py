"""Rewrite a source distribution so that the same content gives the same bytes.

python tools/normalize_sdist.py SDIST FOLDER    (times are $SOURCE_DATE_EPOCH)
"""

from __future__ import annotations

import gzip
import os
import sys
import tarfile
from pathlib import Path


def normalize(source: Path, target: Path, at_s: int) -> None:
    with (
        tarfile.open(source) as given,
        target.open("wb") as raw,
        # No file name and this time in the header of gzip.
        gzip.GzipFile(filename="", fileobj=raw, mode="wb", mtime=at_s) as packed,
        tarfile.open(fileobj=packed, mode="w", format=tarfile.PAX_FORMAT) as made,
    ):
        for member in sorted(given.getmembers(), key=lambda one: one.name):
            member.mtime = at_s
            member.uid = member.gid = 0
            member.uname = member.gname = ""
            member.mode = 0o755 if member.isdir() or member.mode & 0o100 else 0o644
            member.pax_headers = {}
            made.addfile(member, given.extractfile(member) if member.isfile() else None)


def main() -> None:
    source, folder = map(Path, sys.argv[1:])
    normalize(source, folder / source.name, int(os.environ["SOURCE_DATE_EPOCH"]))


if __name__ == "__main__":
    main()
