"""Databases that a pipeline writes to: the rows and the id of their micro-batch are written in one transaction."""
