"""The page that looks inside a translator."""
