"""Transactions: pure rules. An event and a time in, a decision out; no sockets, files, threads or clocks."""
