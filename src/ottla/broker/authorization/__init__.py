"""What clients may do: one rule for each API, around its handler and not in it."""
