"""The charts of a report, as inline SVG and HTML: they follow the colours of the page."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

from roundel.plan import Ints
from roundel.tournament import Standing
from roundel.tournament.standings import wilson

WIDTH, HEIGHT = 260, 26
MOST_IN_MATRIX = 24


def interval(one: Standing, low: float, high: float) -> str:
    """Draw a rating with its interval on a scale from `low` to `high`."""
    span = (high - low) or 1.0

    def x(value: float) -> float:
        return round(8 + (WIDTH - 16) * (value - low) / span, 1)

    middle = HEIGHT / 2
    average = x(1500.0) if low <= 1500.0 <= high else None
    axis = "" if average is None else f'<line class="axis" x1="{average}" x2="{average}" y1="2" y2="{HEIGHT - 2}"/>'
    kind = "gone" if one.out is not None else "live"
    return (
        f'<svg class="interval {kind}" viewBox="0 0 {WIDTH} {HEIGHT}" role="img" '
        f'aria-label="rating {one.rating:.0f}, from {one.low:.0f} to {one.high:.0f}">{axis}'
        f'<line class="whisker" x1="{x(one.low)}" x2="{x(one.high)}" y1="{middle}" y2="{middle}"/>'
        f'<circle cx="{x(one.rating)}" cy="{middle}" r="5"/></svg>'
    )


def survival(standings: Sequence[Standing], rounds: int, is_open: bool) -> str:
    """Draw who was in play in which round: a row an option, a column a round."""
    columns = rounds + is_open
    if not columns:
        return ""
    head = "".join(f"<th scope='col'>{n}</th>" for n in range(1, columns + 1))
    rows = []
    for one in standings:
        cells = []
        for n in range(1, columns + 1):
            if one.out is not None and n > one.out:
                cells.append("<td class='after'></td>")
            elif one.out == n:
                cells.append(
                    f"<td class='fell' title='out in round {n}, by {escape(one.by or '', quote=True)}'>out</td>"
                )
            else:
                cells.append("<td class='in'></td>")
        rows.append(f"<tr><th scope='row'>{escape(one.name)}</th>{''.join(cells)}</tr>")
    return (
        "<div class='scroll'><table class='survival'><thead><tr><th scope='col'>round</th>"
        f"{head}</tr></thead><tbody>{''.join(rows)}</tbody></table></div>"
    )


def matrix(standings: Sequence[Standing], points: Ints) -> str:
    """Draw the share of points that each option took from each other one, the best first."""
    if len(standings) > MOST_IN_MATRIX:
        return ""
    head = "".join(f"<th scope='col'><span>{escape(one.name)}</span></th>" for one in standings)
    rows = []
    for one in standings:
        cells = []
        for other in standings:
            mine, theirs = int(points[one.arm, other.arm]), int(points[other.arm, one.arm])
            total = mine + theirs
            if one.arm == other.arm or not total:
                cells.append("<td class='none'>" + ("" if one.arm == other.arm else "&middot;") + "</td>")
                continue
            share = mine / total
            strength = min(1.0, abs(share - 0.5) * 2)
            side = "won" if share >= 0.5 else "lost"
            bounds = wilson(mine, total // 2)
            low, high = bounds or (0.0, 1.0)
            label = (
                f"{one.name} against {other.name}: {share:.0%} of {total // 2:,} duels (95%: {low:.0%} to {high:.0%})"
            )
            title = escape(label, quote=True)
            cells.append(f"<td class='{side}' style='--s:{strength:.2f}' title='{title}'>{share * 100:.0f}</td>")
        rows.append(f"<tr><th scope='row'>{escape(one.name)}</th>{''.join(cells)}</tr>")
    return (
        "<div class='scroll'><table class='matrix'><thead><tr><th></th>"
        f"{head}</tr></thead><tbody>{''.join(rows)}</tbody></table></div>"
    )
