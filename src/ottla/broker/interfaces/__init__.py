"""How other protocol servers and programs in this process use the broker."""
