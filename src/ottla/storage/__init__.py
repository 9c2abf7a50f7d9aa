"""The partition log in Apache Kafka's file layout, and the catalog."""
