"""One module per API: its request, response and structs, for all versions."""
