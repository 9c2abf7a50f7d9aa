"""Topics in Apache Spark: the data source `format("ottla")` and a session to use it in. Needs `pip install ottla[spark]`."""
