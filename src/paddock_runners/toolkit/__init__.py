"""Shared parts of the official runners: transcripts as messages, tokens, streamed replies, tool calls. SDK only."""
