"""Commands that write and read messages."""
