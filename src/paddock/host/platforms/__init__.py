"""Chat platforms: events in, deliveries out, questions asked and answered in a chat. The HTTP of it is at the doors."""
