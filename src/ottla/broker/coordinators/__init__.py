"""Coordinators of groups and transactions: they drive the pure rules, and keep their log and clock."""
