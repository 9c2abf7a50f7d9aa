"""Authentication, quotas and the audit log. Authorization is in `broker/authorization`."""
