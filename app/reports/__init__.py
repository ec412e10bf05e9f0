"""What a report says of a model, the same in the service and in ``ccmtl fit``."""
