"""JSON Schema: loading, canonical form, compatibility."""
