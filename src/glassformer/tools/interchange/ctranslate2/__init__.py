"""CTranslate2: exports a bundle as its model, and runs it as an engine of the translator."""
