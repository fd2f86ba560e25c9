"""How each provider's API is spoken: requests made and answers read, as functions of values. No connections here."""
