"""Many brokers as one: who is there, who leads what, and who may say so."""
