"""Reads a directory that CTranslate2's converters have written.

``model_file`` reads the binary file, ``configuration`` the options, ``tokens`` the tokens,
``weights`` the numbers; ``load`` joins them.
"""
