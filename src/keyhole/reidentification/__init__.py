"""Re-identification studies (Singer & Dajani): does an attack succeed."""
