"""The record: what happened in a run, as Arrow and Parquet that anybody can read while it is being written."""
