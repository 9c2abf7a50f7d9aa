"""Transactions: pure rules. An event and a time in, a decision out; no socket, file, thread or clock."""
