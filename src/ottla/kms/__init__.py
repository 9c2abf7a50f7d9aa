"""Key management services that wrap the data keys of a key file; imported only where a key is wrapped."""
