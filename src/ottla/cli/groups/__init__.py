"""`ottla group`."""
