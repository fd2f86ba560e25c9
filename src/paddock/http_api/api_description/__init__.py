"""The API in OpenAPI 3.1: every route with its parameters, bodies, answers and examples, as values; served elsewhere.

A new route gets its `Operation` in the file of its room; a test compares them with the routes there are.
"""
