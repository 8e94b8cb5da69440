"""Conceal personal data before guest code or a model sees it, and reveal it on the way out."""
