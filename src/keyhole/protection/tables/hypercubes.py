"""Hypercubes: complementary suppression in tables too large for the exact model.

A category of each variable and another beside it span a hypercube: up in one corner, down in the
next, and every sum stays as it is. Instead of another category a variable may have its total, which
then moves along. A cell that is the corner of a hypercube of suppressed cells can be larger or
smaller, as far as the corners on the other side have room. Each demand takes the cheapest one,
where cells that others need are free; then each is asked again, given all the others, until nothing
gets cheaper (after Repsilber's method in τ-ARGUS, with prices and for linked tables).
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from dataclasses import dataclass, field
from math import prod

import numpy as np

from keyhole.kernels.arrays import Flags, Floats, Ints
from keyhole.protection.tables.attackers import Demand, SuppressionProblem, Witnesses
from keyhole.protection.tables.cells import Linked

# Of more categories beside one, those with the largest totals are tried.
BESIDE, BELOW = 48, 6
# A cell is dear that costs so many times what half of the cells cost.
DEAR = 50.0
# Every demand is asked once for each: what a cell that others need costs, as a part of its cost.
SHARED = (0.5, 0.1, 0.0)
# Cells are given back in so many rounds, or until one saves less than this part of the cost.
EXCHANGES, LITTLE = 3, 0.005


@dataclass(frozen=True, eq=False)
class JointAxis:
    """Axes of one or several tables that share variables, and their common leaves.

    `members` are the table, the axis, and what a node adds to the number of a cell. `chains` has
    for each table one row a leaf: what it adds in all cells it counts in, -1 to fill up; `sizes`
    are the records of each leaf.
    """

    members: list[tuple[int, int, int]]
    chains: list[Ints]
    sizes: Ints
    known: dict[tuple[int, int], tuple[Ints, Ints]] = field(default_factory=dict)

    def moves(self, linked: Linked, table: int, cell: int) -> tuple[Ints, Ints]:
        """Return leaves with which a cell of a table goes up, and those beside them (-1: none)."""
        places = linked.tables[table].places[cell]
        node = int(sum(places[a] * stride for t, a, stride in self.members if t == table))
        if (table, node) not in self.known:
            self.known[table, node] = self._moves(self.chains[table], node)
        return self.known[table, node]

    def _moves(self, chain: Ints, node: int) -> tuple[Ints, Ints]:
        under = (chain == node).any(axis=1)
        leaves = np.flatnonzero(under)
        leaves = leaves[np.argsort(-self.sizes[leaves], kind="stable")]
        if under.all():  # a total moves with any of its leaves
            return leaves[:BESIDE], np.full(len(leaves[:BESIDE]), -1)
        inner = leaves[:BELOW]
        # Beside a node are those that differ in it and share what is above.
        depth = int(np.argmax(chain[leaves[0]] == node))
        above = chain[leaves[0]][depth + 1 :]
        shared = np.isin(chain, above[above >= 0]).sum(axis=1)
        others = np.flatnonzero(~under & (shared == (above >= 0).sum()))
        order = others[np.argsort(-self.sizes[others], kind="stable")]
        if depth:  # of each node beside an inner one its largest leaf
            order = order[np.sort(np.unique(chain[order, depth], return_index=True)[1])]
        order = order[:BESIDE]
        pairs = np.repeat(inner, len(order)), np.tile(order, len(inner))
        return np.append(pairs[0], inner), np.append(pairs[1], np.full(len(inner), -1))


def dear(problem: SuppressionProblem) -> Flags:
    """Tell which cells are suppressed only if nothing else helps, like totals of the whole."""
    typical = float(np.median(problem.cost[problem.allowed]))
    return (problem.cost > DEAR * typical) & ~problem.unsafe


def joint_axes(linked: Linked) -> list[JointAxis]:
    """Return the axes of linked tables, those that share variables as one."""
    groups: list[tuple[set[str], list[tuple[int, int]]]] = []
    for t, table in enumerate(linked.tables):
        for a, axis in enumerate(table.axes):
            names, own = set(axis.names), [(t, a)]
            for group in [one for one in groups if one[0] & names]:
                groups.remove(group)
                names, own = names | group[0], group[1] + own
            groups.append((names, own))
    found = []
    for _, pairs in groups:
        members = [(t, a, prod(linked.tables[t].shape[a + 1 :])) for t, a in pairs]
        leaves = np.stack([linked.tables[t].leaves[a] for t, a in pairs], axis=1)
        distinct, sizes = np.unique(leaves, axis=0, return_counts=True)
        chains = []
        for t, table in enumerate(linked.tables):
            parts = [
                [
                    np.where(nodes < 0, -1, nodes * stride)
                    for nodes in table.axes[a].ancestors(distinct[:, i])
                ]
                for i, (one, a, stride) in enumerate(members)
                if one == t
            ]
            columns = [
                np.where(np.min(some, axis=0) < 0, -1, np.sum(some, axis=0))
                for some in itertools.product(*parts)
                if some
            ]
            nothing = np.zeros(len(distinct), dtype=np.int64)
            chains.append(np.stack(columns or [nothing], axis=1))
        found.append(JointAxis(members, chains, sizes))
    return found


class Hypercubes:
    """A search: the cells that meet each demand, `taken`, and how many demands need each cell."""

    def __init__(self, linked: Linked, witnesses: Witnesses) -> None:
        self.linked, self.witnesses, self.problem = linked, witnesses, witnesses.problem
        problem = self.problem
        self.needed = problem.unsafe.astype(np.int64)
        self.cost, self.price = np.where(problem.unsafe, 0.0, problem.cost), 0.0
        self.taken: dict[Demand, list[Ints]] = {}
        self.users: list[set[Demand]] = [set() for _ in range(linked.size)]
        self.open_ = problem.allowed & ~dear(problem)
        self.cheap = 4 * float(np.median(problem.cost[problem.allowed]))
        self.axes = joint_axes(linked)
        tables, longest = len(linked.tables), max(map(len, linked.places))
        leaves = max(len(axis.sizes) for axis in self.axes)
        deep = max(chain.shape[1] for axis in self.axes for chain in axis.chains)
        self.chains = np.full((len(self.axes), tables, leaves, deep), -1, dtype=np.int64)
        for a, axis in enumerate(self.axes):
            for t, chain in enumerate(axis.chains):
                self.chains[a, t, : len(chain), : chain.shape[1]] = chain
        self.places = np.zeros((tables, longest), dtype=np.int64)
        self.first = np.zeros((tables, longest), dtype=bool)
        self.homes = np.zeros((linked.size, 2), dtype=np.int64)
        self.shares = np.bincount(np.concatenate(linked.places), minlength=linked.size)
        seen = np.zeros(linked.size, dtype=bool)
        for table, place in enumerate(linked.places):
            fresh = ~seen[place]
            self.places[table, : len(place)], self.first[table, : len(place)] = place, fresh
            self.homes[place[fresh]] = np.stack(
                [np.full(fresh.sum(), table), np.flatnonzero(fresh)], axis=1
            )
            seen[place] = True

    def cheapest(self, demand: Demand, barred: Flags | None, shared: float) -> Ints | None:
        """Return the cells of the cheapest move that meets a demand, of one hypercube or two."""
        problem, side = self.problem, demand.side or 1
        open_ = self.open_ if barred is None else self.open_ & ~barred
        best, cells = self._cube(demand.cell, side, demand.level, open_, shared)
        found = np.unique(np.maximum(cells, -1 - cells))
        if best <= self.cheap:
            return found
        half = np.ceil(demand.level / 2) if problem.whole else demand.level / 2
        if half < demand.level:
            paid, first = self._cube(demand.cell, side, half, open_, shared)
            if paid < best:
                changed = np.maximum(first, -1 - first)
                moved = np.zeros(self.linked.size)
                moved[changed] = np.where(first >= 0, half, -half)
                self.needed[changed] += 1
                rest = demand.level - half
                more, second = self._cube(demand.cell, side, rest, open_, shared, moved)
                self.needed[changed] -= 1
                if paid + more < best:
                    return np.union1d(changed, np.maximum(second, -1 - second))
        return found if np.isfinite(best) else None

    def _cube(
        self,
        cell: int,
        side: int,
        step: float,
        open_: Flags,
        shared: float,
        moved: Floats | None = None,
    ) -> tuple[float, Ints]:
        """Return the cheapest hypercube in which a cell moves by a step, and its price."""
        from keyhole.kernels.hypercubes import cheapest_hypercube

        up, down = self.problem.up, self.problem.down
        if moved is not None:
            up, down = up - moved, down + moved
        table, at = self.homes[cell].tolist()
        moves = [axis.moves(self.linked, table, at) for axis in self.axes]
        options = np.array([len(ups) for ups, _ in moves])
        both = np.full((2, len(moves), options.max()), -1, dtype=np.int64)
        for a, (ups, downs) in enumerate(moves):
            both[0, a, : len(ups)], both[1, a, : len(ups)] = ups, downs
        cost, cells = cheapest_hypercube(
            self.chains, both[0], both[1], options, self.places, self.first, self.shares, open_,
            *((up, down)[::side]), step * (1 - 1e-9), self.problem.cost, self.needed, shared,
        )  # fmt: skip
        return cost, cells if side > 0 else -1 - cells

    def proofs(self, demand: Demand, shared: float) -> list[Ints] | None:
        """Return the cells of hypercubes that meet a demand, against every lone contributor too."""
        found: list[Ints] = []
        doubtful: set[int] | None = None
        owners = self.witnesses.owners
        own = set(owners.get(demand.cell, ()))
        while doubtful is None or doubtful:
            barred = None
            if doubtful is not None:
                known = [list(self.problem.knowers[one]) for one in doubtful]
                barred = np.zeros(self.linked.size, dtype=bool)
                barred[list(itertools.chain.from_iterable(known))] = True
            cells = self.cheapest(demand, barred, shared)
            if cells is None:
                return None
            found.append(cells)
            touched = {one for cell in cells.tolist() for one in owners.get(cell, ())} - own
            doubtful = touched if doubtful is None else doubtful & touched
        return found

    def take(self, demand: Demand, proofs: list[Ints]) -> None:
        """Suppress the cells of moves that meet a demand."""
        self.taken[demand] = proofs
        for cells in proofs:
            self.price += float(self.cost[cells[self.needed[cells] == 0]].sum())
            self.needed[cells] += 1
            for cell in cells.tolist():
                self.users[cell].add(demand)

    def give_back(self, demand: Demand) -> list[Ints]:
        """Give back the cells that only this demand needs; return all it had."""
        proofs = self.taken.pop(demand, [])
        for cells in proofs:
            self.needed[cells] -= 1
            self.price -= float(self.cost[cells[self.needed[cells] == 0]].sum())
            for cell in cells.tolist():
                self.users[cell].discard(demand)
        return proofs

    def protect(self) -> list[Demand]:
        """Meet the demands, the cells with the largest cost first; return those not met."""
        demands = sorted(self.witnesses.demands, key=lambda one: -self.problem.cost[one.cell])
        for shared in SHARED:
            for demand in demands:
                self.give_back(demand)
                proofs = self.proofs(demand, shared)
                if proofs is not None:
                    self.take(demand, proofs)
        return [demand for demand in demands if demand not in self.taken]

    def exchange(self, otherwise: Callable[[Demand, Flags], list[Ints] | None]) -> Flags:
        """Give back cells, the dearest first, where what needs them is met for less without them.

        `otherwise` finds other moves that meet a demand within cells. Return what is left.
        """
        for _ in range(EXCHANGES):
            before, extra = self.price, np.flatnonzero((self.needed > 0) & ~self.problem.unsafe)
            for cell in extra[np.argsort(-self.cost[extra], kind="stable")].tolist():
                self._do_without(cell, otherwise)
            if self.price > (1 - LITTLE) * before:
                break
        for demand, proofs in self.taken.items():
            for cells in proofs:
                self.witnesses.keep([(demand.cell, demand.side)], cells)
        return self.needed > 0

    def _do_without(
        self, cell: int, otherwise: Callable[[Demand, Flags], list[Ints] | None]
    ) -> None:
        """Meet all that need a cell without it, if that costs less."""
        before, mine = self.price, sorted(self.users[cell])
        had = {demand: self.give_back(demand) for demand in mine}
        self.open_[cell] = False
        for demand in mine:
            proofs = self.proofs(demand, 0.0)
            if proofs is None or self._added(proofs) > 0:
                other = otherwise(demand, self.open_)
                if other and (proofs is None or self._added(other) < self._added(proofs)):
                    proofs = other
            if proofs is not None:
                self.take(demand, proofs)
            if proofs is None or self.price >= before:
                for one in mine:
                    self.give_back(one)
                for one, cells in had.items():
                    self.take(one, cells)
                break
        self.open_[cell] = True

    def _added(self, proofs: list[Ints]) -> float:
        """Return what moves add to the cost."""
        cells = np.unique(np.concatenate(proofs))
        return float(self.cost[cells[self.needed[cells] == 0]].sum())
