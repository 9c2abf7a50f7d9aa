"""Avro: parsing, canonical form, compatibility."""
