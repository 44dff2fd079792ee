"""The example environment, matched to the example world of veterans."""
