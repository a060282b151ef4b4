"""Everything that uses the core: the command line, the page, the lessons, other programs' files."""
