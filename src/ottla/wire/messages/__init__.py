"""One module per API: its request, its response and the structs they are made of, all versions at once."""
