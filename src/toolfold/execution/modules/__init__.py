"""The modules of guest code that are ours."""
