"""Who may come in: logins, quotas, the audit log. What they may do is `broker/authorization`."""
