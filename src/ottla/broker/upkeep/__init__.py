"""Background work: flushing, retention, compaction, key rotation."""
