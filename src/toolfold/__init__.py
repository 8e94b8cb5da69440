"""Fold every tool an agent has into one."""

__version__ = "0.1.0"
