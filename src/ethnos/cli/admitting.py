"""`ethnos contact`, `ethnos certificates`: let other people and machines in."""

import json
from collections.abc import Sequence
from pathlib import Path

from ethnos.cli.output import print_line
from ethnos.control import contact_of
from ethnos.errors import EthnosError
from ethnos.record.directory import RunDirectory, write_durably
from ethnos.rights import Right, token_for
from ethnos.transport import FOLDER


def contact(name: str, right: Right, output: Path, *, force: bool) -> None:
    """Write a contact file that gives one right and no more."""
    if output.exists() and not force:
        raise EthnosError(f"there is a file {output}; --force overwrites it")
    address, secret = contact_of(RunDirectory.find(name))
    write_durably(output, json.dumps({"address": address, "token": token_for(secret, right)}).encode(), mode=0o600)
    print_line(f"{output}: its holder may {right} while {name} runs, from wherever {address} can be reached")


def certificates(folder: Path, people: Sequence[str], days: int) -> None:
    """Make certificates and say what to do with them."""
    try:
        from ethnos.certificates import make
    except ModuleNotFoundError as missing:
        raise EthnosError(f"{missing.name} is not installed: pip install 'ethnos[tls]'") from None
    for made in make(folder, people, days):
        print_line(f"{made}: {FOLDER}={made.absolute()}, for {days} days")
    print_line(f"{folder / 'ca.key'} signs more of them: keep it off the cluster")
