"""The body of an upload: received, decoded, kept in a file."""
