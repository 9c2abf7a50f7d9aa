"""The data folder: its identity, lock, checkpoints and keys."""
