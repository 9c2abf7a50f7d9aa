"""What can be made to go wrong, to see what comes of it. Imported only where somebody wants that."""
