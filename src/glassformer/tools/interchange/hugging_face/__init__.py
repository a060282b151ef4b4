"""Hugging Face: reads directories that its library transformers writes.

``families`` has one table of options and weights for each family; ``configuration`` reads
``config.json``, ``vocabulary`` the tokenizer, ``weights`` the safetensors; ``load`` joins them.
"""
