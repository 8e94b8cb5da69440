"""Fold every tool an agent has into one."""
