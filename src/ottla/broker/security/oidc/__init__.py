"""Logins through an OpenID Connect provider; imported only if `security.oidc_issuer` is set."""
