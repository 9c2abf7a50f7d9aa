"""`ottla schema`: schemas of a registry."""
