"""Translators for other engines, and from other libraries: weight maps written as tables."""
