"""Settings of tracing."""

from __future__ import annotations

from msgspec import Struct


class TracingConfig(Struct, frozen=True, kw_only=True):
    otlp_endpoint: str = ""
    """The OTLP endpoint of an OpenTelemetry collector over HTTP, such as http://localhost:4318; empty for no traces."""
    sample_ratio: float = 1.0
    """The ratio of traced requests, from 0 to 1; the decision of a traced caller takes precedence."""

    def __post_init__(self) -> None:
        if self.otlp_endpoint and not self.otlp_endpoint.startswith(("http://", "https://")):
            raise ValueError(f"otlp_endpoint must begin with http:// or https://, got {self.otlp_endpoint!r}")
        if not 0 <= self.sample_ratio <= 1:
            raise ValueError(f"sample_ratio must be between 0 and 1, got {self.sample_ratio}")
