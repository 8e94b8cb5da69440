"""How the world gets in."""
