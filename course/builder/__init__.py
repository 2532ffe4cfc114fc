"""Text -> executed notebooks -> `levels`, in this one direction, and the check that all three agree."""
