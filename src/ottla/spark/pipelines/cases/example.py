"""Example test cases for a new pipeline's file, from a record of its topic. Pure rules."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Sequence

_MOST_BYTES: Final = 2000
_FILE: Final = """\
# Test cases: `ottla pipeline test {file}` runs them on Spark, without a broker.

# A record on each line; the rows that the sink gets, in any order. Columns that no row names are not compared.
[case.a_record_becomes_a_row]
records = '''
{record}
'''
rows = '''
{record}
'''

# Records with key, headers or timestamp are written as tables. What does not parse must be named with its reason.
[case.a_record_that_does_not_parse_is_a_dead_letter]
records = [{{ value = "oops", key = "1", headers = {{ trace = "abc" }}, timestamp = "2026-01-01T09:30:00Z" }}]
rows = []
dead_letters = [{{ value = "oops", reason = "not JSON" }}]
"""


def example_tests(file: str, values: Sequence[bytes | None]) -> str | None:
    """For the file that `ottla pipeline init` wrote; None if no record fits on one line as JSON."""
    for value in values:
        try:
            tree = json.loads(value or b"")
        except ValueError:
            continue
        line = json.dumps(tree, ensure_ascii=False)
        if isinstance(tree, dict) and len(line) <= _MOST_BYTES and "'''" not in line and "\x7f" not in line:
            return _FILE.format(file=file, record=line)
    return None
