"""Text with parts that a translation must keep, such as placeholders, emoji and HTML."""
