"""Bridges to other programs: each family or engine has a table of weight names."""
