"""The formats of source records: one module each, with its keys, checks and parser."""
