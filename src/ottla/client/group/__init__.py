"""Consumer group membership: assignments and committed offsets."""
