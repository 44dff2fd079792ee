"""The command line: a thin shell, one file a verb, over the functions of the same names."""
