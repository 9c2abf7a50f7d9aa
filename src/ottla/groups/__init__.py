"""Consumer groups: assignments and committed offsets. Pure rules: no sockets, files, threads or clocks."""
