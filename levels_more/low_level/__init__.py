"""More functions of tensors, and their gradients."""
