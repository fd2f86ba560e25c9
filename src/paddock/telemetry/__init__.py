"""What operators measure: numbers for Prometheus, traces for OpenTelemetry. Nothing here decides anything."""
