"""A shop, three pipelines, and a picture of what came of it: `make demo`."""
