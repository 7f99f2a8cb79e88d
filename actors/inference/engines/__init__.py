"""Engines: what runs a model, behind one small protocol."""
