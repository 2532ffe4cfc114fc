"""Where a reader stopped, and how the state comes back: `python3 -m course resume`."""
