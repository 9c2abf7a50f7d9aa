"""The configs, by what they are about: first those that a topic can set, then those of the broker alone.

Names, types and defaults are Apache Kafka's; `interop/test_config_definitions.py` compares them with a real
broker and lists where we differ. What they mean is written in our own words, and for this broker.
"""
