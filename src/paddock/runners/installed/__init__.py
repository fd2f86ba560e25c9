"""Plugins on this machine: their files, their manifests, and what changes while the host runs."""
