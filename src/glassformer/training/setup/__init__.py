"""What training settles before its first update: options, data, sizes, resuming."""
