"""The schema registry's rules: schemas, their compatibility, and the state of subjects. No I/O."""
