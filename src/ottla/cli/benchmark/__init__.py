"""`ottla bench`."""
