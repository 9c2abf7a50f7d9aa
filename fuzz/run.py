"""One target under atheris, in a separate process, because atheris never returns. `python -m fuzz.run TARGET …`"""

from __future__ import annotations

import sys
from functools import partial

import atheris

from fuzz.forms import load_forms
from fuzz.targets import Targets


def main() -> None:
    name, *arguments = sys.argv[1:]
    target = getattr(Targets(load_forms(partial(atheris.patch_code, trace_dataflow=True))), name)
    # libFuzzer puts its arguments together without quotes to run itself again.
    itself = f"{sys.executable} -m fuzz.run {name}"
    atheris.Setup([itself, *arguments], lambda data: target(data) and None)
    atheris.Fuzz()


if __name__ == "__main__":
    main()
