"""The catalog: topics, users, ACLs, quotas, dynamic configs, producer-id blocks and the cluster id."""
