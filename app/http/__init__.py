"""What all endpoints share: errors, bodies, parameters, the description of the API."""
