"""Writing topics: tasks, transactions, and commits by the driver."""
