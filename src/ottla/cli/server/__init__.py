"""`ottla serve`."""
