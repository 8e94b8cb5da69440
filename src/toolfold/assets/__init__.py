"""Files that the package carries; `scripts/fetch_vocabulary.py` puts them here."""
