"""CTranslate2: a bundle as its model, and its engine behind the translator."""
