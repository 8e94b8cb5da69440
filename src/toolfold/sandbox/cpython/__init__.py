"""Guest code in a real CPython, behind walls of the kernel."""
