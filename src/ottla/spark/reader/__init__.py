"""Reading topics: batches, streams, and segment files without a broker."""
