"""Classical protections of files and tables, each a small function with its price."""
