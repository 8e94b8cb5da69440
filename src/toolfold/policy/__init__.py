"""Which tools code may call: by itself, after the user was asked, or not at all."""
