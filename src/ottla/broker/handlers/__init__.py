"""One module per API family: a request and its context in, a response out."""
