"""The variables that runs share."""
