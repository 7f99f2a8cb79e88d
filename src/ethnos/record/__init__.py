"""The record: what happened in a run, as Arrow and Parquet for anybody to read, also meanwhile."""
