"""The API in OpenAPI 3.1 and as a page for people, made from what the operations declare. Nothing is described here."""
