"""Online streaming feature selection."""
