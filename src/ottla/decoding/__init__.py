"""Values of records as Arrow columns: by registered schemas, or by declared columns."""
