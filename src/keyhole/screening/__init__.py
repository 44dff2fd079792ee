"""What to look at before anything is measured: dependence among variables."""
