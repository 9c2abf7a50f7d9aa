"""Share groups. Imported when the first one is used."""
