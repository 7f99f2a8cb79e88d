"""`ethnos import`: societies from elsewhere."""

from dataclasses import asdict
from pathlib import Path

from ethnos import society
from ethnos.cli.output import print_json, print_line, print_table, safe
from ethnos.errors import EthnosError
from ethnos.importers import terralingua as source


def terralingua(params: Path, output: Path, *, force: bool, as_json: bool) -> None:
    """Write the society for a TerraLingua experiment, and name what has no counterpart."""
    if output.exists() and not force:
        raise EthnosError(f"{output} exists; --force overwrites it")
    imported = source.read(params)
    text = source.to_yaml(imported, lambda value: safe(value, 300))
    society.parse(text, str(output))
    output.write_text(text, "utf-8")
    if as_json:
        print_json({"society": str(output), "notes": [asdict(n) for n in imported.notes]})
        return
    print_line(f"Wrote {output}. These settings have no counterpart:")
    print_table(("setting", "value", "instead"), [(n.setting, n.value, n.instead) for n in imported.notes])
    print_line(f"Try next: ethnos run {output}")
