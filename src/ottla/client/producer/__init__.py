"""The producer: records into batches, batches into requests, and their outcomes."""
