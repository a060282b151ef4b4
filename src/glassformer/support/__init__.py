"""Helpers of every package: errors, files, hashes, threads, progress, languages."""
