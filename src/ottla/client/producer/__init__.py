"""Sending: records into batches, batches into requests, and what becomes of each."""
