"""A shop, three pipelines, and a chart of the result: `make demo`."""
