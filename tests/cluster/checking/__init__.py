"""A check in the manner of Jepsen's log test: real clients, real faults, a history, and a checker."""
