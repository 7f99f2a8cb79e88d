"""Ethnos: societies of language agents on the record."""
