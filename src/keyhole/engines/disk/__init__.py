"""The disk engine: codes in mapped files, counted by the same kernels as in memory."""
