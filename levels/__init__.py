"""Five levels, one answer: a small deep-learning framework, from machine instructions up to `model.fit`."""
