"""Build notebooks from their texts, execute them, build `levels` from them, and check that all three agree."""
