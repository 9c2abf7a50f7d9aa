"""`python -m ottla`, and `ottla`."""

from __future__ import annotations

from ottla.core.quick_imports import without_garbage_collection

with without_garbage_collection():
    from ottla.cli.main import main

if __name__ == "__main__":
    main()
