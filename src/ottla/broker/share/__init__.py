"""Share groups as this broker serves them. Imported when the first of them is asked for."""
