"""Judges: who points at a segment."""
