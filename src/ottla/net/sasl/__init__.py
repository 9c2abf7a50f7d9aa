"""The broker side of SASL exchanges: bytes in, bytes out. No sockets, clocks or event loops."""
