"""Argos Translate's packages, which LibreTranslate reads too: in and out.

``package_in`` reads a package; ``export`` writes one, with the sentence splitter of ``splitter``.
"""
