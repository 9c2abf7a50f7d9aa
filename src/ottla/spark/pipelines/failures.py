"""Extracts the relevant line of Spark's error output. Pure rules."""

from __future__ import annotations

import re
from typing import Final

_RAISED: Final = re.compile(
    r"(?:Caused by: )?(?P<kind>(?:[A-Za-z_]\w*\.)+[A-Z]\w+|\w+(?:Error|Exception)): (?P<said>.+)",
)
_WRAPPERS: Final = (
    "py4j.Py4JException",
    "py4j.protocol.Py4JJavaError",
    "org.apache.spark.SparkException",
    "org.apache.spark.api.python.PythonException",
)


def reason_of(failure: BaseException) -> str:
    """The root cause: Python's if there is one, otherwise Spark's."""
    return reason_in(str(failure)) or type(failure).__name__


def reason_in(text: str) -> str:
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    raised = [match for line in lines if (match := _RAISED.fullmatch(line)) and match["kind"] not in _WRAPPERS]
    python = [match for match in raised if not match["kind"].startswith(("org.", "java.", "py4j."))]
    if python or raised:
        return str((python or raised)[-1]["said"])
    return lines[0] if lines else ""
