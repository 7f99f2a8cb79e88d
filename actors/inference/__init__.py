"""Inference for a whole society: one pool that batches over agents and drives engines."""
