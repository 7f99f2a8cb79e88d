"""Where Streamlit starts: a folder of its own, since Streamlit puts it first on the import path."""
