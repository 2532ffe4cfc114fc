"""What the five levels are built with, and no section explains: written by hand."""
