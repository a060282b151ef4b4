"""Files through a translator: the texts in them change, all else stays."""
