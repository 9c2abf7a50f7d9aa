"""Metrics as OpenMetrics 1.0 text, which Prometheus reads."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from ottla.broker.metrics import Histogram

_ESCAPES: Final = str.maketrans({"\\": "\\\\", '"': '\\"', "\n": "\\n"})


class Family:
    """A metric with its samples, one for each set of labels."""

    def __init__(self, name: str, kind: str, help_text: str) -> None:
        self._name = name
        self._suffix = "_total" if kind == "counter" else ""
        self._lines = [f"# TYPE {name} {kind}", f"# HELP {name} {help_text}"]

    def add(self, value: float, **labels: str) -> None:
        self._add(self._suffix, value, labels)

    def add_at(self, value: float, labels: str) -> None:
        """Add a sample with labels as returned by `labels_text`: for many samples, several of which have the same
        labels.
        """
        self._lines.append(f"{self._name}{self._suffix}{{{labels}}} {value}")

    def add_histogram(self, times: Histogram, **labels: str) -> None:
        for bound, count in times.cumulative():
            self._add("_bucket", count, labels | {"le": repr(bound)})
        self._add("_bucket", times.count, labels | {"le": "+Inf"})
        self._add("_sum", times.total_s, labels)
        self._add("_count", times.count, labels)

    def _add(self, suffix: str, value: float, labels: dict[str, str]) -> None:
        pairs = labels_text(labels)
        self._lines.append(f"{self._name}{suffix}{{{pairs}}} {value}" if pairs else f"{self._name}{suffix} {value}")

    def text(self) -> bytes:
        return "\n".join((*self._lines, "")).encode("utf-8", "replace")


def labels_text(labels: dict[str, str]) -> str:
    return ",".join([f'{name}="{text.translate(_ESCAPES)}"' for name, text in labels.items()])


def counter(name: str, help_text: str) -> Family:
    return Family(name, "counter", help_text)


def gauge(name: str, help_text: str) -> Family:
    return Family(name, "gauge", help_text)


def histogram(name: str, help_text: str) -> Family:
    return Family(name, "histogram", help_text)
