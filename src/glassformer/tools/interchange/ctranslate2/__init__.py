"""Exports a bundle as a model of CTranslate2, and runs CTranslate2 as an engine."""
