"""How the documentation is built: Markdown pages, the public interface, and tables made from the registry."""

import sys
from pathlib import Path

from docutils import nodes
from docutils.parsers.rst import Directive

import roundel
from roundel.policies import policies

sys.path.insert(0, str(Path(__file__).parent))

project = "roundel"
copyright = "2026, the roundel developers"
version = release = roundel.__version__
extensions = ["myst_parser", "sphinx.ext.autodoc"]
myst_enable_extensions = ["colon_fence", "dollarmath"]
myst_heading_anchors = 3
exclude_patterns = ["_build"]
html_theme = "furo"
html_title = "roundel"
autodoc_member_order = "bysource"
autodoc_typehints = "description"


class PolicyTable(Directive):
    """Every registered policy, as `roundel policies` prints it."""

    def run(self) -> list[nodes.Node]:
        """Return a section for each policy."""
        found = []
        for policy in policies().values():
            section = nodes.section(ids=[nodes.make_id(f"policy-{policy.name}")])
            section += nodes.title(text=policy.name)
            section += nodes.paragraph(text=f"{policy.summary}.")
            facts = nodes.bullet_list()
            lines = [f"Assumes: {policy.assumption}. Rounds: at most {policy.bound}.", policy.paper]
            lines += [
                f"{p.name} = {p.default}" + (f" ({', '.join(p.choices)})" if p.choices else "")
                for p in policy.parameters
            ]
            for line in lines:
                facts += nodes.list_item("", nodes.paragraph(text=line))
            section += facts
            found.append(section)
        return found


def setup(app) -> None:
    """Register what this page set needs."""
    app.add_directive("policy-table", PolicyTable)
