"""The built-in corpus of dates, times and amounts of money, from Unicode's CLDR."""
