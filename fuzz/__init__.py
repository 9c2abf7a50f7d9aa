"""Fuzzing of the record codec: `make fuzz`, or `python -m fuzz SECONDS [TARGET …]`."""
