"""`ottla` on a failing disk: fsync returns EIO for files in the folders that are listed in `DATA_DIR.eio`."""

from __future__ import annotations

import errno
import os
import sys
from pathlib import Path

from ottla.cli.main import main

_really = os.fsync


def _fsync(fd: int) -> None:
    data_dir = Path(sys.argv[sys.argv.index("--data-dir") + 1])
    try:
        listed = data_dir.with_name(f"{data_dir.name}.eio").read_text().split()
    except FileNotFoundError:
        listed = []
    if Path(os.readlink(f"/proc/self/fd/{fd}")).parent.name in listed:
        raise OSError(errno.EIO, os.strerror(errno.EIO))
    _really(fd)


if __name__ == "__main__":
    os.fsync = _fsync
    main()
