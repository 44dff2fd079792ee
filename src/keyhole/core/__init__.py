"""Names, files and options that every package of keyhole shares."""
