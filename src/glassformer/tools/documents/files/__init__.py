"""Reads files to translate, and writes files with new texts and unchanged other content."""
