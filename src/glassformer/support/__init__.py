"""What every room needs and none is about: errors, files, hashes, threads, progress, languages."""
