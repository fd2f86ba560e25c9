"""Chat platforms: which agent answers an event, how questions and long answers are put, when to deliver again."""
