"""What all endpoints share: errors, reading bodies, parameters, the description of the API."""
