"""The broker: its state, its request handlers, and its interfaces."""
