"""`tf.keras.backend`: nothing is kept from model to model, so there is nothing to clear."""


def clear_session():
    """Nothing to do."""
