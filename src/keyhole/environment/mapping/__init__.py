"""What a mapping answers: keys against one form, a class, public sources, and in stages."""
