"""Files of tables, as both the commands and the service read them."""
