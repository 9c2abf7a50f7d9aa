"""The configs by subject: first those of topics, then those of brokers.

Names, types and defaults are Apache Kafka's; `interop/test_config_definitions.py` compares them with a real
broker and lists the differences. The documentation is written for this broker.
"""
