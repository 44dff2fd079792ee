"""keyhole: look at your data through the keyhole an intruder would use."""
