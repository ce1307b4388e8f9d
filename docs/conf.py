"""How the documentation is built: Markdown pages, the public interface, and tables made from the registry."""

import sys
from collections.abc import Iterator
from pathlib import Path

from docutils import nodes
from docutils.parsers.rst import Directive
from typer.main import get_command

import roundel
from roundel.cli import app as command_line
from roundel.policies import policies
from roundel.policies.registry import word

sys.path.insert(0, str(Path(__file__).parent))

project = "roundel"
copyright = "2026, the roundel developers"
version = release = roundel.__version__
extensions = ["myst_parser", "sphinx.ext.autodoc"]
myst_enable_extensions = ["colon_fence", "dollarmath"]
myst_heading_anchors = 3
exclude_patterns = ["_build"]
default_role = "code"
smartquotes = False  # the docs show options and JSON
html_theme = "furo"
html_title = "roundel"
autodoc_member_order = "bysource"
autodoc_typehints = "description"
autoclass_content = "both"


class PolicyTable(Directive):
    """Every registered policy, as `roundel policies` prints it."""

    def run(self) -> list[nodes.Node]:
        """Return a section for each policy."""
        found = []
        for policy in policies().values():
            facts = [
                paragraph(f"Assumes: {policy.assumption}. Rounds: at most {policy.bound}."),
                paragraph(policy.paper),
            ]
            facts += [
                paragraph(f"`{p.name}={word(p.default)}`" + (f" ({', '.join(p.choices)})" if p.choices else ""))
                for p in policy.parameters
            ]
            found.append(section(policy.name, f"{policy.summary}.", facts))
        return found


class CommandTable(Directive):
    """Every command, as `--help` prints it."""

    def run(self) -> list[nodes.Node]:
        """Return a section for each command."""
        return list(commands(get_command(command_line), "roundel"))


def commands(command, path: str) -> Iterator[nodes.section]:
    """Yield a section for each command below `command`."""
    below = getattr(command, "commands", None)
    if below is None:
        yield section(path, command.help, [described(parameter) for parameter in command.params])
        return
    for name, inner in below.items():
        yield from commands(inner, f"{path} {name}")


def described(parameter) -> nodes.paragraph:
    """Say what one argument or option of a command is."""
    names = [] if parameter.param_type_name == "argument" else [", ".join(parameter.opts)]
    name = " ".join([*names, parameter.metavar or ""]).strip()
    return paragraph(f"`{name}`: {parameter.help}")


def paragraph(text: str) -> nodes.paragraph:
    """Return a paragraph; what stands in backticks is code."""
    made = nodes.paragraph()
    for at, piece in enumerate(text.split("`")):
        made += nodes.literal(text=piece) if at % 2 else nodes.Text(piece)
    return made


def section(title: str, text: str, facts: list[nodes.paragraph]) -> nodes.section:
    """Return a section: a title, a paragraph, a list."""
    made = nodes.section(ids=[nodes.make_id(title)])
    made += nodes.title(text=title)
    made += paragraph(text)
    made += nodes.bullet_list("", *(nodes.list_item("", fact) for fact in facts))
    return made


def is_plain_field(app, what, name, member, skip, options) -> bool | None:
    """Leave out the fields of named tuples: their class says what they are."""
    return True if (member.__doc__ or "").startswith("Alias for field number") else None


def setup(app) -> None:
    """Register what this page set needs."""
    app.connect("autodoc-skip-member", is_plain_field)
    app.add_directive("policy-table", PolicyTable)
    app.add_directive("command-table", CommandTable)
