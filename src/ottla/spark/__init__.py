"""Topics in Apache Spark: the data source `format("ottla")` and a session to use it in.

Needs `pip install ottla[spark]`.
"""

from ottla.spark.environment.session import session

__all__ = ["session"]
