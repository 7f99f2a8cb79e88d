"""The dashboard: pages over what `ethnos.analytics` reads and `ethnos.control` does. `ethnos dashboard` opens it."""
