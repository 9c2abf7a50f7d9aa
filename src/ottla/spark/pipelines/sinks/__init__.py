"""The kinds of sinks: one module each, with its keys, checks, evolution rules and writer."""
