"""Text with parts that a translation must keep: placeholders, addresses, emoji, HTML."""
