"""Reads a directory that CTranslate2's converters write: their model as readable parts.

``model_file`` reads the binary file, ``configuration`` the options, ``tokens`` the tokens,
``weights`` the numbers; ``load`` joins them.
"""
