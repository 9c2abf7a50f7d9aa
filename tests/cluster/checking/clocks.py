"""A separate wall clock for a process, moved while it runs by a small library preloaded before libc.

Only the time of day jumps. Monotonic clocks are not affected, as when an administrator sets the clock of a machine.
"""

from __future__ import annotations

import shutil
import struct
import subprocess
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from pathlib import Path

_SOURCE: Final = r"""
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

static volatile long long *shift;
static int (*real_gettime)(clockid_t, struct timespec *);

__attribute__((constructor)) static void begin(void) {
    real_gettime = dlsym(RTLD_NEXT, "clock_gettime");
    int file = open(getenv("SHIFTED_CLOCK"), O_RDONLY);
    if (file >= 0) shift = mmap(0, sizeof *shift, PROT_READ, MAP_SHARED, file, 0);
}

int clock_gettime(clockid_t clock, struct timespec *now) {
    int failed = real_gettime(clock, now);
    if (!failed && clock == CLOCK_REALTIME && shift) now->tv_sec += *shift;
    return failed;
}

int gettimeofday(struct timeval *now, void *zone) {
    struct timespec precise;
    (void)zone;
    clock_gettime(CLOCK_REALTIME, &precise);
    now->tv_sec = precise.tv_sec;
    now->tv_usec = precise.tv_nsec / 1000;
    return 0;
}

time_t time(time_t *told) {
    struct timespec precise;
    clock_gettime(CLOCK_REALTIME, &precise);
    if (told) *told = precise.tv_sec;
    return precise.tv_sec;
}
"""


class NoCompiler(Exception):
    """No C compiler is available."""


class ShiftedClock:
    def __init__(self, folder: Path, number: int) -> None:
        compiler = shutil.which("cc")
        if compiler is None:
            raise NoCompiler("a shifted clock takes a C compiler")
        self._shift = folder / f"shift-{number}"
        self.jump(0)
        library = folder / "shifted_clock.so"
        if not library.exists():
            source = folder / "shifted_clock.c"
            source.write_text(_SOURCE)
            subprocess.run([compiler, "-shared", "-fPIC", "-o", library, source, "-ldl"], check=True)
        self.environment = {"LD_PRELOAD": str(library), "SHIFTED_CLOCK": str(self._shift)}

    def jump(self, seconds: int) -> None:
        """Set the clock to this many seconds off the real time."""
        if not self._shift.exists():
            self._shift.write_bytes(bytes(8))
        with self._shift.open("r+b") as file:
            file.write(struct.pack("=q", seconds))
