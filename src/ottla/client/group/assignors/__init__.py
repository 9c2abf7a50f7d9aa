"""Which member gets which partition. All pure, with Java's results for the same input."""
