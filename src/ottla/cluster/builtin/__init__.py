"""The catalog of the workers of one machine: kept by their supervisor, in a file, without ZooKeeper."""
