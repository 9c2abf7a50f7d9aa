"""Dead letters of sources: found by the query that parses the records, delivered beside it, each once."""
