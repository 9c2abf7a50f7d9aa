"""Authentication over HTTP: passwords, tokens, certificates, browser sessions and OpenID Connect."""
