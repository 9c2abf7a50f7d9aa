"""Coordinators of groups and transactions: they run the pure rules, and manage their log and clock."""
