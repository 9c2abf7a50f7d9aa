"""The SASL exchanges, from the broker's side: bytes in, bytes out. No socket, no clock, no event loop."""
