"""Inspection of the five levels: side by side, one step through all of them, and where each name is defined."""
