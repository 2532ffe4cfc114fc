"""The five levels, looked at: side by side, through each other, and where each thing is written."""
