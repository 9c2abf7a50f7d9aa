"""Columns of tables: their types, conversion to Arrow, and which changes of them a table can follow."""
