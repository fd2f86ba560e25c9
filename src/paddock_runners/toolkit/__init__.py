"""What the official runners share: transcripts as model messages, tokens, streamed replies, tool calls. SDK only."""
