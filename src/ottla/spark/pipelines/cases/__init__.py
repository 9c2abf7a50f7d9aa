"""Test cases of pipelines: sample records in, expected rows and dead letters out, without a broker."""
