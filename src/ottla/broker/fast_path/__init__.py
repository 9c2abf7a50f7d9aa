"""The usual produce and fetch requests, from the receive buffer to the responses, in C."""
