"""Consumer groups of the new protocol (KIP-848): the broker assigns, members follow step by step."""
