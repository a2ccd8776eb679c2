"""The shared hard cases, each a test named after it, through the whole pipeline."""
