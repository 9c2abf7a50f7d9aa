"""Clusters: membership, the controller, leader election and the shared catalog."""
