"""The pure rules of replication: events and time in, decisions out."""
