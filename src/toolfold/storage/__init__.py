"""Files and databases: made private, locked, replaced whole, brought up to date."""
