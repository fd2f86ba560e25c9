"""Several hosts on one store: who is there, who owns a session, and what one host asks of another."""
