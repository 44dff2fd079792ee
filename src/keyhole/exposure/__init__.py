"""How exposed the records of a file are: cells, minimal uniques, population, levels."""
