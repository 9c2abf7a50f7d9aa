"""Key management services that wrap data keys; imported only if used."""
