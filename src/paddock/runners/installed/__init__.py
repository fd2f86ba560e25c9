"""Plugins on this machine: their files and their manifests."""
