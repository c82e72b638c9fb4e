"""The second world: a consumer group made of numbers. It obeys the same controller, and every event is served."""
