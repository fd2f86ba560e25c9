"""What clients say of a conversation: their copy of its history, its name, its attachments."""
