"""What is known of the worlds that come with Ethnos: a module of `VALIDATIONS` for each, run by `ethnos validate`.

They stand beside the worlds, not in them: whoever runs a world pays for none of it.
"""
