"""What forecasts of past blocks of time tell of those to come: how far they may be off."""
