"""Logins through an OpenID Connect provider; imported only where `security.oidc_issuer` is set."""
