"""The commands and their options; what they do is in the modules beside this one, loaded when needed."""

from pathlib import Path
from typing import Annotated, Literal

import typer

from ethnos.cli.models import app as models_here

app = typer.Typer(
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    help="Societies of language agents on the record.",
)
importing = typer.Typer(no_args_is_help=True, help="Write a society file from another platform's settings.")
app.add_typer(importing, name="import")
app.add_typer(models_here, name="models")

Json = Annotated[bool, typer.Option("--json", help="Print one JSON object and nothing else.")]
Run = Annotated[str, typer.Argument(metavar="RUN", help="A run's name, or the path of its directory.")]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="Show no progress and no summary.")]
Force = Annotated[bool, typer.Option("--force", "-f", help="Overwrite the file.")]


@app.callback(invoke_without_command=True)
def ethnos(version: Annotated[bool, typer.Option("--version", help="Print the version.")] = False) -> None:
    """Societies of language agents on the record."""
    if version:
        from importlib.metadata import version as version_of

        typer.echo(f"ethnos {version_of('ethnos')}")
        raise typer.Exit


@app.command()
def run(
    society: Annotated[str, typer.Argument(metavar="SOCIETY", help="A society file, or a shipped society.")],
    name: Annotated[str | None, typer.Option(help="What to call the run.  [default: SOCIETY-<n>]")] = None,
    seed: Annotated[int | None, typer.Option(help="Another seed than the file's.")] = None,
    ticks: Annotated[int | None, typer.Option(help="Another number of ticks than the file's.")] = None,
    changes: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="KEY=VALUE", help="Change a value, such as world.food.spawn_rate=3."),
    ] = None,
    quiet: Quiet = False,
    as_json: Json = False,
) -> None:
    """Run a society. Ctrl-C stops it after the current tick, with a valid record."""
    from ethnos.cli import running

    asked = [f"seed={seed}"] * (seed is not None) + [f"ticks={ticks}"] * (ticks is not None)
    code = running.run(society, name, [*(changes or ()), *asked], quiet=quiet, as_json=as_json)
    raise typer.Exit(code)


@app.command()
def resume(name: Run, quiet: Quiet = False, as_json: Json = False) -> None:
    """Bring a run that was stopped or has crashed to its end."""
    from ethnos.cli import again

    raise typer.Exit(again.resume(name, quiet=quiet, as_json=as_json))


@app.command()
def replay(
    name: Run,
    to: Annotated[int | None, typer.Option(min=0, help="Stop after this tick and print the world, as JSON.")] = None,
    quiet: Quiet = False,
    as_json: Json = False,
) -> None:
    """Execute a run again from its recorded decisions, without minds, and hold each tick against the record."""
    from ethnos.cli import again

    raise typer.Exit(again.replay(name, to, quiet=quiet, as_json=as_json))


@app.command()
def fork(
    name: Run,
    at: Annotated[int, typer.Option(min=0, help="The last tick that the branch shares with RUN.")],
    changes: Annotated[
        list[str] | None, typer.Option("--set", metavar="KEY=VALUE", help="Change a value from there on.")
    ] = None,
    intervene: Annotated[Path | None, typer.Option(help="A YAML list of interventions.")] = None,
    seed: Annotated[int | None, typer.Option(help="Another seed from there on: other luck.")] = None,
    new: Annotated[
        str | None, typer.Option("--name", help="What to call the branch.  [default: RUN-at-TICK-<n>]")
    ] = None,
    start: Annotated[bool, typer.Option("--start/--no-start", help="Run it, or only make it.")] = True,
    quiet: Quiet = False,
    as_json: Json = False,
) -> None:
    """Branch off a run: the same history up to a tick, then another future under the same chance."""
    from ethnos.cli import again

    asked = [*(changes or ()), *([f"seed={seed}"] * (seed is not None))]
    code = again.fork(name, at, asked, intervene, new, start=start, quiet=quiet, as_json=as_json)
    raise typer.Exit(code)


@app.command()
def sweep(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="A sweep file: a society, what to vary, how often.")],
    name: Annotated[str | None, typer.Option(help="What to call it.  [default: the file's name]")] = None,
    workers: Annotated[int | None, typer.Option(min=1, help="Runs at once.  [default: one per core]")] = None,
    quiet: Quiet = False,
    as_json: Json = False,
) -> None:
    """Run a society under many conditions, several times each, and compare. Goes on where it was interrupted."""
    from ethnos.cli import sweeping

    sweeping.sweep(file, name, workers, quiet=quiet, as_json=as_json)


@app.command()
def play(name: Run, agent: Annotated[str, typer.Argument(help="Name or id of an agent that lives.")]) -> None:
    """Take an agent's place in a running society: see what it sees, choose among what it may do."""
    from ethnos.cli import playing

    playing.play(name, agent)


@app.command()
def pause(name: Run, as_json: Json = False) -> None:
    """Let no further tick of a running society begin."""
    from ethnos.cli import steering

    steering.steer(name, "Pause", as_json=as_json)


@app.command(name="continue")
def continue_(name: Run, as_json: Json = False) -> None:
    """Go on with a society that is paused."""
    from ethnos.cli import steering

    steering.steer(name, "Resume", as_json=as_json)


@app.command()
def step(
    name: Run, ticks: Annotated[int, typer.Argument(min=1, help="How many ticks.")] = 1, as_json: Json = False
) -> None:
    """Let a paused society do one tick, or some, and pause again."""
    from ethnos.cli import steering

    steering.steer(name, "Step", as_json=as_json, ticks=ticks)


@app.command()
def stop(name: Run, as_json: Json = False) -> None:
    """End a running society after its tick; it can be resumed."""
    from ethnos.cli import steering

    steering.steer(name, "Stop", as_json=as_json, reason="stopped by request")


@app.command()
def intervene(
    name: Run,
    do: Annotated[str, typer.Argument(metavar="DO", help="What to do, such as tell or add_resources.")],
    values: Annotated[list[str] | None, typer.Argument(metavar="KEY=VALUE...", help="Such as text=hello.")] = None,
    as_json: Json = False,
) -> None:
    """Change a running society from outside, in its next tick or at tick=N. It is an event like all else.

    set_parameter name= value=, add_resources amount= [x= y=], remove_resources amount= [x= y=],
    add_agent cohort= [name= x= y=], remove_agent agent=, tell text= [to= speaker=], edit_persona agent= persona=,
    place_artifact name= text= [x= y= lifetime=]
    """
    from ethnos.cli import steering

    steering.intervene(name, do, values or [], as_json=as_json)


@app.command()
def runs(as_json: Json = False) -> None:
    """List the runs."""
    from ethnos.cli import listing

    listing.runs(as_json=as_json)


@app.command()
def show(name: Run, as_json: Json = False) -> None:
    """Summarise a run, also while it runs."""
    from ethnos.cli import listing

    listing.show(name, as_json=as_json)


@app.command()
def schema(name: Run, as_json: Json = False) -> None:
    """Print every table and view of a run, with the meaning and unit of each column."""
    from ethnos.cli import listing

    listing.schema(name, as_json=as_json)


@app.command()
def verify(name: Run, as_json: Json = False) -> None:
    """Recompute a run's digest and ledger from its record."""
    from ethnos.cli import listing

    raise typer.Exit(0 if listing.verify(name, as_json=as_json) else 1)


@app.command()
def sql(
    arguments: Annotated[
        list[str],
        typer.Argument(metavar="RUN... QUERY", help="Runs, or a pattern such as 'exp*', then one SQL query."),
    ],
    limit: Annotated[int, typer.Option(min=1, help="How many rows a table shows.")] = 50,
    csv: Annotated[bool, typer.Option("--csv", help="Print all rows as CSV.")] = False,
    as_json: Json = False,
    parquet: Annotated[Path | None, typer.Option(help="Write all rows to a Parquet file.")] = None,
    force: Force = False,
) -> None:
    """Ask one or more runs in SQL, also while they run. Several, or a pattern, give a column run."""
    from ethnos.cli import asking

    if len(arguments) < 2:
        raise typer.BadParameter("give at least one run, then a query", param_hint="RUN... QUERY")
    if csv + as_json + (parquet is not None) > 1:
        raise typer.BadParameter("choose one of --csv, --json and --parquet")
    *names, query = arguments
    asking.ask(names, query, asking.Form(limit, csv=csv, json=as_json, parquet=parquet, force=force))


@app.command()
def measures(as_json: Json = False) -> None:
    """List what can be measured in a run: formula, unit, source."""
    from ethnos.cli import measuring

    measuring.measures(as_json=as_json)


@app.command()
def measure(
    name: Run,
    what: Annotated[str, typer.Argument(metavar="NAME", help="One of `ethnos measures`.")],
    by: Annotated[Literal["tick", "agent", "cohort"] | None, typer.Option(help="Break it down.")] = None,
    limit: Annotated[int, typer.Option(min=1, help="How many rows a table shows.")] = 50,
    csv: Annotated[bool, typer.Option("--csv", help="Print all rows as CSV.")] = False,
    as_json: Json = False,
    parquet: Annotated[Path | None, typer.Option(help="Write all rows to a Parquet file.")] = None,
    force: Force = False,
) -> None:
    """Measure a run, also while it runs."""
    from ethnos.cli import asking, measuring

    measuring.measure(name, what, by, asking.Form(limit, csv=csv, json=as_json, parquet=parquet, force=force))


@app.command()
def network(
    name: Run,
    show: Annotated[
        Literal["edges", "communities", "structure", "participation", "changes"], typer.Option(help="Which table.")
    ] = "structure",
    window: Annotated[int | None, typer.Option(min=1, help="Ticks per window.  [default: the whole run]")] = None,
    weights: Annotated[
        list[str] | None, typer.Option("--weight", metavar="KIND=WEIGHT", help="Such as gift=2; 0 leaves it out.")
    ] = None,
    limit: Annotated[int, typer.Option(min=1, help="How many rows a table shows.")] = 50,
    csv: Annotated[bool, typer.Option("--csv", help="Print all rows as CSV.")] = False,
    as_json: Json = False,
    parquet: Annotated[Path | None, typer.Option(help="Write all rows to a Parquet file.")] = None,
    force: Force = False,
) -> None:
    """Who has to do with whom: signed ties, communities, and what becomes of them."""
    from ethnos.cli import asking, measuring

    form = asking.Form(limit, csv=csv, json=as_json, parquet=parquet, force=force)
    measuring.network(name, show, window, weights or [], form)


@app.command()
def prompt(
    name: Run,
    agent: Annotated[int, typer.Option(help="The agent's id.")],
    tick: Annotated[int, typer.Option(help="The tick of the turn.")],
    as_json: Json = False,
) -> None:
    """Show exactly what a model was sent in one turn, and what came back."""
    from ethnos.cli import prompting

    prompting.prompt(name, agent, tick, as_json=as_json)


@app.command()
def probe(
    society: Annotated[str, typer.Argument(metavar="SOCIETY", help="A society file that names the model.")],
    model: Annotated[str | None, typer.Option(help="Which of its models.  [default: the first]")] = None,
    personas: Annotated[
        list[str] | None,
        typer.Option("--persona", metavar="NAME:TRAIT=VALUE,...", help="A persona, such as kind:agreeableness=1."),
    ] = None,
    repeats: Annotated[int, typer.Option(min=1, help="How often each question is put.")] = 1,
    as_json: Json = False,
) -> None:
    """Ask a model a questionnaire of biases under several personas: framing, anchoring, bandwagon, authority."""
    from ethnos.cli import probing

    probing.ask(society, model, personas or [], repeats, as_json=as_json)


@app.command()
def copy(
    name: Run,
    place: Annotated[str, typer.Argument(metavar="PLACE", help="A folder or a URL, such as s3://bucket/runs.")],
    back: Annotated[bool, typer.Option("--back", help="Bring the copy of RUN at PLACE into the runs folder.")] = False,
) -> None:
    """Copy what is sealed of a run to another place, also while it runs; or bring a copy back."""
    from ethnos.cli import copying

    copying.copy(name, place, back=back)


@app.command()
def contact(
    name: Run,
    right: Annotated[Literal["look", "control", "administer"], typer.Option(help="What its holder may do.")] = "look",
    output: Annotated[Path, typer.Option("--output", "-o", help="The file to write.")] = Path("contact.json"),
    force: Force = False,
) -> None:
    """Write a file with which somebody else may look at a running society, or steer it: `ethnos pause FILE`."""
    from ethnos.cli import admitting

    admitting.contact(name, right, output, force=force)


@app.command()
def certificates(
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="Where the authority is, or will be made.")],
    people: Annotated[list[str] | None, typer.Option("--person", help="Somebody who looks in from outside.")] = None,
    days: Annotated[int, typer.Option(min=1, help="How long the certificates last.")] = 90,
) -> None:
    """Make certificates for TLS: DIR/node for all nodes (ETHNOS_TLS_DIR), DIR/NAME for people; DIR/ca.key signs."""
    from ethnos.cli import admitting

    admitting.certificates(folder, people or [], days)


@app.command()
def doctor(
    society: Annotated[
        str | None, typer.Argument(metavar="[SOCIETY]", help="A society that is to run here, for what it will need.")
    ] = None,
    as_json: Json = False,
) -> None:
    """Look at this machine, or the cluster at $RAY_ADDRESS, and say what will go wrong. Exit code 1: something will."""
    from ethnos.cli import examining

    raise typer.Exit(examining.doctor(society, as_json=as_json))


@app.command()
def validate(
    worlds: Annotated[
        list[str] | None, typer.Argument(metavar="[WORLD...]", help="Worlds by name or module:Class.  [default: all]")
    ] = None,
    quick: Annotated[bool, typer.Option("--quick", help="Fewer replicates: a minute rather than many.")] = False,
    page: Annotated[Path | None, typer.Option(metavar="FILE.md", help="Also write the table to a page.")] = None,
    as_json: Json = False,
) -> None:
    """Measure what must come out of a world, and say whether it does. Exit code 1: something does not."""
    from ethnos.cli import validating

    raise typer.Exit(validating.validate(worlds or [], page, quick=quick, as_json=as_json))


@app.command(name="new-world")
def new_world(
    name: Annotated[str, typer.Argument(metavar="NAME", help="What to call it: a name that Python can import.")],
    folder: Annotated[Path, typer.Option(help="Where its folder NAME goes.")] = Path(),
) -> None:
    """Write a small working world of one's own, with its test, its validation and its society file."""
    from ethnos.cli import validating

    validating.new_world(name, folder)


@app.command()
def picture(
    name: Run,
    tick: Annotated[int | None, typer.Option(help="Which tick to show.  [default: the last]")] = None,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="The file to write; - is standard output.  [default: RUN.svg]")
    ] = None,
    force: Force = False,
) -> None:
    """Draw a run as SVG: a map, if its world has one, and charts. Also while it runs."""
    from ethnos.cli import picturing

    picturing.picture(name, tick, output, force=force)


@app.command()
def study(
    names: Annotated[list[str], typer.Argument(metavar="RUN...", help="One run, or several to compare.")],
    codebook: Annotated[Path | None, typer.Option(help="Codes of one's own, as YAML.")] = None,
    model: Annotated[str | None, typer.Option(help="Let this model of the society annotate, too.")] = None,
    coders: Annotated[int, typer.Option(min=1, max=9, help="So many times, each on its own.")] = 1,
    live: Annotated[bool, typer.Option("--follow", help="Keep up with a run until it ends.")] = False,
) -> None:
    """Write an ethnography: annotations, networks, lineages and findings with evidence, and a report in HTML."""
    from ethnos.cli import studying

    studying.studied(names, codebook, model, coders, live=live)


@app.command()
def dashboard(
    folder: Annotated[
        Path | None, typer.Argument(metavar="[RUNS_DIR]", help="Where the runs are.  [default: ./runs]")
    ] = None,
    address: Annotated[
        str, typer.Option(help="Where to listen. Beyond this machine it asks for a token.")
    ] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=1, max=65535, help="The port.")] = 8501,
    browser: Annotated[bool, typer.Option("--browser/--no-browser", help="Open a browser, or only listen.")] = True,
) -> None:
    """Watch societies live, look into any life, ask any question: in a browser."""
    from ethnos.cli import boarding

    boarding.dashboard(folder, address, port, browser=browser)


@importing.command()
def terralingua(
    params: Annotated[Path, typer.Argument(metavar="PARAMS.json", help="The parameters of an experiment.")],
    output: Annotated[Path, typer.Option("--output", "-o", help="The society file to write.")],
    force: Force = False,
    as_json: Json = False,
) -> None:
    """Import a TerraLingua experiment's params.json, and name each setting that has no counterpart."""
    from ethnos.cli import bringing

    bringing.terralingua(params, output, force=force, as_json=as_json)
