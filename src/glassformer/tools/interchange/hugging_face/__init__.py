"""Reads and writes directories of transformers, the library of Hugging Face.

``families`` has one table of options and weights for each family; ``configuration`` reads
``config.json``, ``vocabulary`` the tokenizer, ``weights`` the safetensors; ``load`` joins them.
"""
