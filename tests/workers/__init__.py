"""Workers: several brokers that share a machine, and the process that looks after them."""
