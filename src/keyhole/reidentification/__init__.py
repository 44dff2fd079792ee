"""Re-identification studies (Singer & Dajani): does an actual attack succeed?"""
