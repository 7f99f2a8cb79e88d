"""The anthropologist: from a run's record to findings with evidence. It reads the record and writes only `study/`."""
