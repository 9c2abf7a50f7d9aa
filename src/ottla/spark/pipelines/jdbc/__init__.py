"""Databases that Spark reaches through a JDBC driver."""
