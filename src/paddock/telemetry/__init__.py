"""Telemetry for operators: numbers for Prometheus, traces for OpenTelemetry. Nothing here decides anything."""
