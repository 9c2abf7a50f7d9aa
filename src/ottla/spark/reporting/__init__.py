"""Progress of queries, reported to consumer groups."""
