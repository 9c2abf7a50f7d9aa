"""Each schema type behind the common interface."""
