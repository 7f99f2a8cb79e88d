"""Society files out of other platforms' settings. Their files are untrusted: data, checked strictly."""
