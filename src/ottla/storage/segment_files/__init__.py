"""Segments and their indexes: files of batches."""
