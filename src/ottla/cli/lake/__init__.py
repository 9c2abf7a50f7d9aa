"""`ottla lake`: topics as Iceberg tables."""
