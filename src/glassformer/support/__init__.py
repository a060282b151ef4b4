"""Helpers for every package: errors, files, hashes, threads, progress, languages."""
