"""ProVer."""
