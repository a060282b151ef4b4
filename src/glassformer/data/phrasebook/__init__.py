"""The built-in corpus: dates, amounts and times that Unicode's CLDR can write in two languages."""
