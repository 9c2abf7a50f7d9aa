"""Consumer groups: who reads what, and how far they have got. Rules only: no socket, file, thread or clock."""
