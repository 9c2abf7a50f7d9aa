"""Administration: topics, configs, groups, offsets and the cluster."""
