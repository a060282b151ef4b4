"""Marian's own files: models as ``.npz``, and the zip files of OPUS-MT.

``model_file`` reads the numbers and options, ``configuration`` makes our settings of them,
``vocabulary`` reads the tokens; ``load`` joins them.
"""
