"""An order service with confluent-kafka, to show how one is tested: its tests are tests/testing/test_orders.py."""
