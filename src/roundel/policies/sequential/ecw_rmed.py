"""ECW-RMED, efficient Copeland winners relative minimum empirical divergence.

J. Komiyama, J. Honda, H. Nakagawa, Copeland Dueling Bandit Problem: Regret Lower Bound, Optimal Algorithm, and
Computationally Efficient Algorithm, ICML 2016. After every duel the cheapest numbers of duels are worked out that
would prove some arm i1 to be a Copeland winner: every arm that i1 beats must be proved beaten, and for every other
arm i2 enough of the arms ahead of it that i2 must lose more often than i1. Pairs that lack duels by that measure come
into the next pass over the list. Pairs with few duels, or too close to a tie, are explored first.

Derived: the check whether all is proved. It is that the evidence N kl(phat, 1/2) of the pairs of i1, and for each i2
the sum of the `need` smallest such numbers of the arms ahead of it, reaches ln t. The lists start with all pairs
i < j; (i1, i1) joins as the paper has it.

How it is fast: a duel changes one divergence and, rarely, two scores. While the scores stay, only what its two arms
must be proved to lose is worked out anew; the rest is remembered. Where i1 loses to nobody no other arm sets a
constraint at all. Pairs to be explored change with a duel or at times that are known, row by row. Once all is
proved, i1 plays itself until ln t catches up.
"""

from __future__ import annotations

from math import exp, log
from typing import NamedTuple

import numpy as np

from roundel._jit import kernel
from roundel.errors import PolicyError
from roundel.policies.sequential._evidence import first_time, half_kl
from roundel.policies.sequential._family import FOREVER, Floats, Ints, sequential
from roundel.rng import State as Random

# The places in `memory`:
NOW, SIZE, PLACE, COMING, PENDING, QUIET, WINNER = 0, 1, 2, 3, 4, 5, 6
_PROVED = 1e300


class State(NamedTuple):
    """What ECW-RMED knows."""

    alpha: float
    beta: float
    points: Ints  # points[i, j]: half-wins of i over j
    divergence: Floats  # divergence[i, j] = kl(phat[i][j], 1/2)
    losses: Ints  # losses[i]: how many are ahead of i, the paper's L_i
    few: Ints  # few[i, j], i < j: from which t on the pair has too few duels
    clear: Ints  # clear[i, j], i < j: from which t on it is not too close to a tie
    explore: Ints  # explore[i]: pairs (i, j), j > i, to be explored
    event: Ints  # event[i]: when `explore[i]` may change by itself
    lists: Ints  # lists[0]: the paper's L_C, pairs as K i + j; lists[1]: L_N
    rest: Ints  # rest[p] = 1: pair p is in L_R
    coming: Ints  # coming[p] = 1: pair p is in L_N
    picked: Ints  # room: the arms chosen to prove that an arm is no winner
    cost: Floats  # cost[i1, i2]: the regret of proving that i2 is no better than i1 (on the diagonal: of what i1 beats)
    costed: Ints  # costed[i1, i2] = 1: that is up to date
    known: Ints  # known[i2] = 1: the next three are, for i2 against i1
    share: Ints  # share[i2]: h - k, see `pick`
    chosen: Ints  # chosen[i2, j] = 1: j is picked against i2
    proved: Floats  # proved[i2]: the ln t up to which i2 is proved no better
    memory: Ints  # the time; how long L_C is, and how far played; how long L_N is; whether a list pair has been
    # played and not been followed up; until when the winner plays itself; the empirical winner i1


@kernel
def choose(state: State, t: int, rng: Random) -> tuple[int, int]:
    """Return the first pair to be explored, or the next of the list."""
    memory, explore = state.memory, state.explore
    K = len(explore)
    if t <= memory[QUIET]:
        return memory[WINNER], memory[WINNER]
    level = 0.0
    if memory[PENDING]:
        memory[PENDING] = 0
        level = _follow_up(state, log(t - 1))
    memory[NOW] = t
    next_event = FOREVER
    for i in range(K):
        if state.event[i] <= t:
            _review_row(state, i)
        next_event = min(next_event, state.event[i])
    for i in range(K):
        if explore[i] > 0:
            j = i + 1
            while not _must_explore(state, i, j, t):
                j += 1
            return i, j
    if memory[PLACE] == memory[SIZE]:
        _turn_over(state)
    pair = state.lists[0, memory[PLACE]]
    memory[PLACE] += 1
    memory[PENDING] = 1
    state.rest[pair] = 0
    i, j = pair // K, pair % K
    if i == j and memory[SIZE] == 1 and i == memory[WINNER]:
        memory[QUIET] = min(first_time(level), next_event) - 1
    return i, j


@kernel
def _must_explore(state: State, i: int, j: int, t: int) -> bool:
    return bool(state.few[i, j] <= t or t < state.clear[i, j])


@kernel(inline=False)
def _review_row(state: State, i: int) -> None:
    """Count the pairs of row i to be explored, and find out when that may change."""
    now, event, count = state.memory[NOW], FOREVER, 0
    for j in range(i + 1, len(state.explore)):
        few, clear = state.few[i, j], state.clear[i, j]
        if few <= now:
            count += 1
            continue
        event = min(event, few)
        if now < clear:
            count += 1
            event = min(event, clear)
    state.explore[i], state.event[i] = count, event


@kernel
def _turn_over(state: State) -> None:
    """Let the next list be the current one."""
    memory, lists = state.memory, state.lists
    for n in range(memory[COMING]):
        pair = lists[1, n]
        lists[0, n] = pair
        state.rest[pair], state.coming[pair] = 1, 0
    memory[SIZE], memory[COMING], memory[PLACE] = memory[COMING], 0, 0


@kernel
def _enlist(state: State, i: int, j: int) -> None:
    """Put a pair on the next list, unless it still stands on the current one."""
    memory = state.memory
    pair = min(i, j) * len(state.explore) + max(i, j)
    if state.rest[pair] == 0 and state.coming[pair] == 0:
        state.coming[pair] = 1
        state.lists[1, memory[COMING]] = pair
        memory[COMING] += 1


@kernel
def _follow_up(state: State, level: float) -> float:
    """Enlist the pairs that lack duels at ln t = `level`; return up to which level all is proved."""
    i1 = cheapest_winner(state)
    K = len(state.explore)
    all_proved = proved_level(state, i1)
    if all_proved < level:
        for j in range(K):
            if state.points[i1, j] > state.points[j, i1] and _evidence(state, i1, j) < level:
                _enlist(state, i1, j)
        for i2 in range(K):
            share = state.share[i2]
            if share > 0:
                for j in range(K):
                    if state.chosen[i2, j] and share * _evidence(state, j, i2) < level:
                        _enlist(state, j, i2)
    _enlist(state, i1, i1)
    return all_proved


@kernel
def _evidence(state: State, i: int, j: int) -> float:
    """Return N[i][j] kl(phat[i][j], 1/2)."""
    return float(0.5 * (state.points[i, j] + state.points[j, i]) * state.divergence[i, j])


@kernel
def cheapest_winner(state: State) -> int:
    """Return, of the arms with the fewest losses, the one that is proved a winner at the least regret."""
    losses = state.losses
    K = len(losses)
    fewest, ties, best = K, 0, 0
    for i in range(K):
        if losses[i] < fewest:
            fewest, ties, best = losses[i], 0, i
        ties += int(losses[i] == fewest)
    if ties > 1:
        least = -1.0
        for i in range(K):
            if losses[i] == fewest:
                cost = proof_cost(state, i)
                if least < 0.0 or cost < least:
                    best, least = i, cost
    return best


@kernel
def proof_cost(state: State, i1: int) -> float:
    """Return the regret, times 2 (K - 1), of proving that i1 wins, for ln t = 1."""
    total = 0.0
    for i2 in range(len(state.losses)):
        if not state.costed[i1, i2]:
            state.cost[i1, i2] = _cost(state, i1, i2)
            state.costed[i1, i2] = 1
        total += state.cost[i1, i2]
    return total


@kernel
def _cost(state: State, i1: int, i2: int) -> float:
    points, losses = state.points, state.losses
    total = 0.0
    if i1 == i2:
        for j in range(len(losses)):
            if points[i1, j] > points[j, i1]:
                total += (losses[j] - losses[i1]) / state.divergence[i1, j]
        return total
    share = pick(state, i1, i2)
    if share > 0:
        for j in range(len(losses)):
            if state.picked[j]:
                total += (losses[i2] + losses[j] - 2 * losses[i1]) / (share * state.divergence[j, i2])
    return total


@kernel
def spare(state: State, i1: int, i2: int) -> int:
    """Return how many of the arms ahead of i2, without i1, need not be proved to be (below 0: none must be)."""
    return int(state.losses[i1] - 1 - int(state.points[i1, i2] > state.points[i2, i1]))


@kernel(inline=False)
def pick(state: State, i1: int, i2: int) -> int:
    """Pick the arms that prove most cheaply that i2 is behind i1, and return h - k; 0 if nothing must be proved.

    The first h by cost are dueled 1 / ((h - k) kl) ln t times each. As costs ascend, (c_1 + ... + c_h) / (h - k)
    falls as long as the next cost is below it, and rises from there.
    """
    points, losses, picked = state.points, state.losses, state.picked
    K, k = len(losses), spare(state, i1, i2)
    if i1 == i2 or k < 0:
        return 0
    for j in range(K):
        picked[j] = 0
    h, total = 0, 0.0
    while True:
        following, least = -1, _PROVED
        for j in range(K):
            if points[j, i2] > points[i2, j] and j != i1 and not picked[j]:
                cost = (losses[j] + losses[i2] - 2 * losses[i1]) / state.divergence[j, i2]
                if cost < least:
                    following, least = j, cost
        if following < 0 or (h > k and least * (h - k) >= total):
            return h - k
        picked[following] = 1
        h += 1
        total += least


@kernel
def proved_level(state: State, i1: int) -> float:
    """Return the ln t up to which the evidence proves that i1 wins; remember what it takes."""
    points, known = state.points, state.known
    K = len(known)
    if state.memory[WINNER] != i1:
        state.memory[WINNER] = i1
        for i2 in range(K):
            known[i2] = 0
    level = _PROVED
    for i2 in range(K):
        if points[i1, i2] > points[i2, i1]:
            level = min(level, _evidence(state, i1, i2))
        if not known[i2]:
            known[i2] = 1
            state.share[i2] = pick(state, i1, i2)
            for j in range(K):
                state.chosen[i2, j] = state.picked[j]
            state.proved[i2] = _proved(state, i1, i2)
        level = min(level, state.proved[i2])
    return level


@kernel
def _proved(state: State, i1: int, i2: int) -> float:
    """Return the ln t up to which the evidence proves that i2 is no better than i1."""
    points, picked, k = state.points, state.picked, spare(state, i1, i2)
    K = len(picked)
    if i1 == i2 or k < 0:
        return _PROVED
    total = 0.0
    for j in range(K):
        picked[j] = int(points[j, i2] > points[i2, j] and j != i1)
        if picked[j]:
            total += _evidence(state, j, i2)
    for _ in range(k):  # leave the k largest out
        most, largest = -1, -1.0
        for j in range(K):
            if picked[j] and _evidence(state, j, i2) > largest:
                most, largest = j, _evidence(state, j, i2)
        picked[most] = 0
        total -= largest
    return total


@kernel
def _forget(state: State, i: int, j: int, scores_too: bool) -> None:
    """Note that the pair has changed, and maybe scores."""
    for k in range(len(state.known)):
        if scores_too:
            state.known[k] = 0
            for m in range(len(state.known)):
                state.costed[k, m] = 0
        else:
            state.costed[k, i] = state.costed[k, j] = 0
    state.known[i] = state.known[j] = 0


@kernel
def learn(state: State, i: int, j: int, points: int) -> None:
    """Count the duel and refresh what depends on this pair."""
    table = state.points
    before = table[i, j] - table[j, i]
    table[i, j] += points
    table[j, i] += 2 - points
    after = table[i, j] - table[j, i]
    _forget(state, i, j, (after > 0) != (before > 0) or (after < 0) != (before < 0))
    state.losses[i] += int(after < 0) - int(before < 0)
    state.losses[j] += int(after > 0) - int(before > 0)
    state.divergence[i, j] = state.divergence[j, i] = half_kl(table[i, j] / (table[i, j] + table[j, i]))
    n = 0.5 * (table[i, j] + table[j, i])
    a, b = min(i, j), max(i, j)
    state.few[a, b] = first_time((n / state.alpha) ** 2)  # n < alpha sqrt(ln t)
    state.clear[a, b] = _clear_time(abs(after) / (4.0 * n), state.beta)
    _review_row(state, a)


@kernel
def _clear_time(gap: float, beta: float) -> int:
    """Return from which t on gap >= beta / max(1, ln ln t)."""
    if gap >= beta:
        return 1
    if gap * 4.0 < beta:  # ln ln t would have to be above 4
        return FOREVER
    return first_time(exp(beta / gap))


@kernel
def idle(state: State, t: int) -> int:
    """Return until when the winner plays itself."""
    return max(t, int(state.memory[QUIET]))


@sequential(
    "ecw-rmed",
    paper="Komiyama, Honda & Nakagawa, Copeland Dueling Bandit Problem: Regret Lower Bound, Optimal Algorithm, and "
    "Computationally Efficient Algorithm, ICML 2016",
    assumption="Copeland",
    choose=choose,
    learn=learn,
    idle=idle,
)
def ecw_rmed(arms: int, horizon: int, rng: Random, *, alpha: float = 3.0, beta: float = 0.01) -> State:
    """Duel what proves a Copeland winner at the least regret; no pair may be a tie."""
    if not alpha > 0.0 or not beta > 0.0:
        raise PolicyError(f"ecw-rmed: alpha is {alpha} and beta is {beta}: both must be above 0")
    pairs = [arms * i + j for i in range(arms) for j in range(i + 1, arms)]
    lists = np.zeros((2, arms * (arms + 1) // 2), np.int64)
    lists[0, : len(pairs)] = pairs
    rest = np.zeros(arms * arms, np.int64)
    rest[pairs] = 1
    return State(
        alpha=alpha,
        beta=beta,
        points=np.zeros((arms, arms), np.int64),
        divergence=np.zeros((arms, arms)),
        losses=np.zeros(arms, np.int64),
        few=np.ones((arms, arms), np.int64),
        clear=np.ones((arms, arms), np.int64),
        explore=np.arange(arms - 1, -1, -1),
        event=np.full(arms, FOREVER),
        lists=lists,
        rest=rest,
        coming=np.zeros(arms * arms, np.int64),
        picked=np.zeros(arms, np.int64),
        cost=np.zeros((arms, arms)),
        costed=np.zeros((arms, arms), np.int64),
        known=np.zeros(arms, np.int64),
        share=np.zeros(arms, np.int64),
        chosen=np.zeros((arms, arms), np.int64),
        proved=np.zeros(arms),
        memory=np.array([0, len(pairs), 0, 0, 0, FOREVER if arms == 1 else 0, 0]),
    )
