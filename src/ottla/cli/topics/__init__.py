"""`ottla topic`."""
