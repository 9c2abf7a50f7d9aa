"""Share groups (KIP-932): pure rules."""
