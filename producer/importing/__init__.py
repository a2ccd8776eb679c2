"""Importing history: one file a format, each yielding Rows; ``run`` hands them in."""
