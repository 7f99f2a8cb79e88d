"""The pages there are: what shows them, title, icon, address."""

from collections.abc import Callable

from ethnos.dashboard.views import agent, artifacts, compare, control, findings, network, runs, society, sql

Page = tuple[Callable[[], None], str, str, str]

PAGES: dict[str, list[Page]] = {
    "Watch": [
        (runs.show, "Runs", ":material/list:", "runs"),
        (society.show, "Society", ":material/public:", "society"),
        (agent.show, "Agent", ":material/person:", "agent"),
    ],
    "Study": [
        (artifacts.show, "Artifacts", ":material/description:", "artifacts"),
        (network.show, "Network", ":material/hub:", "network"),
        (findings.show, "Findings", ":material/fact_check:", "findings"),
        (sql.show, "SQL", ":material/database:", "sql"),
    ],
    "Act": [
        (compare.show, "Compare", ":material/compare_arrows:", "compare"),
        (control.show, "Control", ":material/tune:", "control"),
    ],
}
