"""Workers: several brokers on one machine, and their supervisor."""
