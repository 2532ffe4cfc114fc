"""More parts: layers, losses, metrics, optimizers, data."""
