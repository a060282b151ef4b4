"""Reads and writes files whose texts are translated, and whose other content stays."""
