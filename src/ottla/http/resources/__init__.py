"""Endpoints of topics, the cluster, users and other resources."""
