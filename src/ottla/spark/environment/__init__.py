"""A Spark to run on: its session, its Java, its home, and what is shipped to workers."""
