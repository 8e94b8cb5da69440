"""Logins at upstreams that want one."""
