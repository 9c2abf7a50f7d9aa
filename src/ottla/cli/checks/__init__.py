"""What `ottla doctor` looks at. In each module, what finds out is apart from what judges."""
