"""Exports bundles to other inference engines: each has a table of weight names."""
