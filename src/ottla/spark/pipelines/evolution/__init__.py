"""Schema evolution: how the table of a sink follows the columns of its query."""
