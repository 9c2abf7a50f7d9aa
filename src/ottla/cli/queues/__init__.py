"""`ottla queue`."""
