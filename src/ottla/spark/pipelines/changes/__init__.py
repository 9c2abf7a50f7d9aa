"""Rows that replace and delete others by key."""
