"""An order service, to show how one is tested: with three clients, by tests/testing/test_orders.py."""
