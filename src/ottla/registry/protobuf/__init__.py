"""Protobuf: parsing, canonical form, descriptors, compatibility."""
