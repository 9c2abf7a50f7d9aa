"""A whole cluster in one process on virtual time, deterministic from one seed: `python -m tests.simulation --help`."""
