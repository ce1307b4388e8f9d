"""UCB-TS: find an arm of a tournament solution, the top cycle or the uncovered set.

In the spirit of S. Ramamohan, A. Rajkumar, S. Agarwal, Dueling Bandits: Beyond Condorcet Winners to General
Tournament Solutions, NIPS 2016; the rule that selects the pairs is ours, and less economical. i surely beats j if
L[i][j] > 1/2, and may beat it if U[i][j] > 1/2. The top cycle holds the arms from which wins lead to all others,
the uncovered set those from which they do in at most two steps. If an arm is in the solution of the sure wins, it is
in that of every tournament which the intervals allow, as more wins only help: the first such arm plays itself.
Otherwise comes the pair dueled least, of those open either way with an arm in the solution of the possible wins.

How it is fast: wins change sides at times that are known (see `_outlook`), the solutions only then. The number of
two-step paths between any two arms is kept, which a changed win updates in O(K), so that the uncovered set is read
off by counting; the top cycle takes O(K^2) a change. Each row remembers its least-dueled open pair.
"""

from __future__ import annotations

from typing import Literal, NamedTuple

import numpy as np

from roundel._jit import kernel
from roundel.errors import PolicyError
from roundel.policies.sequential._family import FOREVER, Ints, sequential
from roundel.policies.sequential._outlook import CHANGES, DUE, Outlook, go_on, outlook, review
from roundel.rng import State as Random

SEEN, ANSWER = 0, 1  # the places in `memory`
SURE, POSSIBLE = 0, 1


class State(NamedTuple):
    """What UCB-TS knows. Of two graphs: 0, whom an arm surely beats; 1, whom it may beat."""

    uncovered: bool
    points: Ints  # points[i, j]: half-wins of i over j
    outlook: Outlook
    edge: Ints  # edge[g, i, j] = 1: i beats j in graph g
    paths: Ints  # paths[g, i, j]: arms k with i beating k and k beating j
    member: Ints  # member[g, i] = 1: i is in the solution of graph g
    least: Ints  # least[i]: the fewest duels of an open pair (i, j) with j > i; FOREVER if there is none
    queue: Ints  # room for a search
    memory: Ints  # the changes taken in so far; the arm that plays itself, or -1


@kernel
def choose(state: State, t: int, rng: Random) -> tuple[int, int]:
    """Return an arm that is surely in the solution, twice, or the least-dueled pair that may decide it."""
    if state.memory[ANSWER] >= 0 and t < state.outlook.clock[DUE]:
        return state.memory[ANSWER], state.memory[ANSWER]
    go_on(state.outlook, t)
    if state.outlook.clock[CHANGES] != state.memory[SEEN]:
        _take_in_changes(state)
    if state.memory[ANSWER] >= 0:
        return state.memory[ANSWER], state.memory[ANSWER]
    least = state.least
    i = 0
    for k in range(len(least)):
        if least[k] < least[i]:
            i = k
    points = state.points
    for j in range(i + 1, len(least)):
        if _is_open(state, i, j) and points[i, j] + points[j, i] == 2 * least[i]:
            return i, j
    return i, i


@kernel
def _take_in_changes(state: State) -> None:
    rise, now, edge = state.outlook.rise, state.outlook.clock[0], state.edge
    K = len(rise)
    for i in range(K):
        for j in range(K):
            if i != j:
                may = int(rise[i, j] <= now)
                if edge[POSSIBLE, i, j] != may:
                    _flip(state, POSSIBLE, i, j)
                    _flip(state, SURE, j, i)
    for g in range(2):
        if state.uncovered:
            _solve_uncovered(edge[g], state.paths[g], state.member[g])
        else:
            _solve_top_cycle(edge[g], state.member[g], state.queue)
    state.memory[ANSWER] = -1
    for i in range(K - 1, -1, -1):
        if state.member[SURE, i]:
            state.memory[ANSWER] = i
    for i in range(K):
        _find_least(state, i)
    state.memory[SEEN] = state.outlook.clock[CHANGES]


@kernel(inline=False)
def _flip(state: State, g: int, i: int, j: int) -> None:
    """Add or take away the edge from i to j."""
    edge, paths = state.edge[g], state.paths[g]
    change = 1 - 2 * edge[i, j]
    edge[i, j] += change
    if state.uncovered:
        for k in range(len(edge)):
            paths[i, k] += change * edge[j, k]
            paths[k, j] += change * edge[k, i]


@kernel
def _solve_uncovered(edge: Ints, paths: Ints, member: Ints) -> None:
    """Find the arms that reach all others in at most two steps."""
    for i in range(len(member)):
        member[i] = 1
        for j in range(len(member)):
            if i != j and edge[i, j] == 0 and paths[i, j] == 0:
                member[i] = 0
                break


@kernel
def _solve_top_cycle(edge: Ints, member: Ints, queue: Ints) -> None:
    """Find the arms that reach all others.

    If there are any, the start of the last search is one, when each search starts from the first arm that no
    earlier one has reached. Then all that reach this arm are such.
    """
    K = len(member)
    for i in range(K):
        member[i] = 0
    root = 0
    for i in range(K):
        if member[i] == 0:
            root = i
            _search(edge, i, False, member, queue)
    for i in range(K):
        member[i] = 0
    if _search(edge, root, False, member, queue) < K:
        for i in range(K):
            member[i] = 0
        return
    for i in range(K):
        member[i] = 0
    _search(edge, root, True, member, queue)


@kernel(inline=False)
def _search(edge: Ints, start: int, backward: bool, reached: Ints, queue: Ints) -> int:
    """Mark all that `start` reaches, or all that reach it, through arms not marked before; return how many."""
    reached[start] = 1
    queue[0] = start
    head, tail = 0, 1
    while head < tail:
        i = queue[head]
        head += 1
        for j in range(len(reached)):
            if reached[j] == 0 and (edge[j, i] if backward else edge[i, j]) == 1:
                reached[j] = 1
                queue[tail] = j
                tail += 1
    return tail


@kernel
def _is_open(state: State, i: int, j: int) -> bool:
    """Whether the pair may go either way, and one of them may be in the solution."""
    edge, member = state.edge, state.member
    matters = member[POSSIBLE, i] + member[POSSIBLE, j] > 0
    return bool(matters and edge[POSSIBLE, i, j] + edge[POSSIBLE, j, i] == 2)


@kernel(inline=False)
def _find_least(state: State, i: int) -> None:
    points = state.points
    least = FOREVER
    for j in range(i + 1, len(points)):
        if _is_open(state, i, j):
            least = min(least, (points[i, j] + points[j, i]) // 2)
    state.least[i] = least


@kernel
def learn(state: State, i: int, j: int, points: int) -> None:
    """Count the duel and refresh what depends on this pair."""
    state.points[i, j] += points
    state.points[j, i] += 2 - points
    review(state.outlook, i, j, state.points[i, j], state.points[j, i])
    _find_least(state, min(i, j))


@kernel
def idle(state: State, t: int) -> int:
    """Return until when no win changes sides."""
    return max(t, int(state.outlook.clock[DUE]) - 1) if state.memory[ANSWER] >= 0 else t


@sequential(
    "ucb-ts",
    paper="in the spirit of Ramamohan, Rajkumar & Agarwal, Dueling Bandits: Beyond Condorcet Winners to General "
    "Tournament Solutions, NIPS 2016",
    assumption="none",
    choose=choose,
    learn=learn,
    idle=idle,
)
def ucb_ts(
    arms: int,
    horizon: int,
    rng: Random,
    *,
    solution: Literal["top-cycle", "uncovered"] = "top-cycle",
    alpha: float = 0.51,
) -> State:
    """Duel until some arm is surely in the top cycle, or in the uncovered set; no pair may be a tie."""
    if not alpha > 0.5:
        raise PolicyError(f"ucb-ts: alpha is {alpha}: it must be above 1/2")
    uncovered = solution == "uncovered"
    state = State(
        uncovered=uncovered,
        points=np.zeros((arms, arms), np.int64),
        outlook=outlook(arms, alpha),
        edge=np.zeros((2, arms, arms), np.int64),
        paths=np.zeros((2, arms, arms) if uncovered else (2, 0, 0), np.int64),
        member=np.zeros((2, arms), np.int64),
        least=np.zeros(arms, np.int64),
        queue=np.zeros(arms, np.int64),
        memory=np.array([-1, -1]),
    )
    state.edge[POSSIBLE] = 1 - np.eye(arms, dtype=np.int64)
    if uncovered:
        state.paths[POSSIBLE] = max(0, arms - 2)
        np.fill_diagonal(state.paths[POSSIBLE], arms - 1)
    return state
