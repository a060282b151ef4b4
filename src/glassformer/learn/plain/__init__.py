"""Plain forms of parts that the package takes from a library: the solutions of some lessons."""
