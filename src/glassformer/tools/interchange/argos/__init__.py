"""Argos Translate's packages, which LibreTranslate reads too: in and out."""
