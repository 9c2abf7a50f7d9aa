"""What every other package may use: ids, errors, the clock and configuration."""
