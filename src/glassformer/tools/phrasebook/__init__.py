"""The built-in corpus: dates, times and amounts of money, from Unicode's CLDR."""
