"""One training on several processes."""
