"""Imports and exports packages of Argos Translate, which LibreTranslate reads too."""
