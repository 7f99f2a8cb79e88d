"""The pages there are: what shows them, title, icon, address."""

from collections.abc import Callable

from ethnos.dashboard.views import runs, society

Page = tuple[Callable[[], None], str, str, str]

PAGES: dict[str, list[Page]] = {
    "Watch": [
        (runs.show, "Runs", ":material/list:", "runs"),
        (society.show, "Society", ":material/public:", "society"),
    ],
}
