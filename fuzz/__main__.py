"""Fuzz each target for its share of the time: `python -m fuzz SECONDS [TARGET …]`.

Atheris guides the mutations by the coverage of the uncompiled form; the compiled one has to give the same answers.
Inputs that reach something new are added to `fuzz/corpus`, inputs that fail to `fuzz/findings`. Exits with 1 if
any failed.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path

from fuzz.targets import NAMES

HERE = Path(__file__).parent
CORPUS = HERE / "corpus"
FINDINGS = HERE / "findings"
MAX_INPUT_BYTES = 4096


def atheris(target: str, *arguments: object) -> int:
    command = [sys.executable, "-m", "fuzz.run", target, *map(str, arguments)]
    return subprocess.run(command, check=False, cwd=HERE.parent).returncode


def fuzz(target: str, seconds: int) -> int:
    kept = CORPUS / target
    kept.mkdir(parents=True, exist_ok=True)
    FINDINGS.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory() as found:
        failed = atheris(
            target,
            found,
            kept,
            f"-max_total_time={seconds}",
            f"-max_len={MAX_INPUT_BYTES}",
            "-timeout=20",
            "-rss_limit_mb=2048",
            "-print_final_stats=1",
            f"-artifact_prefix={FINDINGS}/{target}-",
        )
        # Of what was found, keep only what reaches something that the corpus does not.
        return atheris(target, kept, found, "-merge=1") or failed


def main() -> None:
    seconds = int(sys.argv[1]) if len(sys.argv) > 1 else 60
    targets = sys.argv[2:] or list(NAMES)
    failed = [target for target in targets if fuzz(target, max(seconds // len(targets), 1))]
    if failed:
        sys.exit(f"failed: {', '.join(failed)}; the inputs are in {FINDINGS}")


if __name__ == "__main__":
    main()
