"""Commands for users, rights, keys and certificates."""
