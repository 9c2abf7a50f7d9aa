"""The catalog of the workers of one machine: stored in a file by their supervisor, without ZooKeeper."""
