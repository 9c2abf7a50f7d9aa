"""The broker: what it serves, what it holds, and the doors to it."""
