"""Partitions against brute force over all partitions of small sets."""

import math

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from keyhole.environment.codings.partitions import (
    canonical,
    components,
    group_count,
    is_discrete,
    join_partitions,
    meet,
    partition_entropy,
    refines,
    representatives,
)


def all_partitions(size):
    """Every partition of `size` things, as canonical tuples (restricted growth strings)."""
    found = [()]
    for _ in range(size):
        found = [(*p, k) for p in found for k in range(max(p, default=-1) + 2)]
    return found


def slow_refines(finer, coarser):
    size = range(len(finer))
    return all(coarser[i] == coarser[j] for i in size for j in size if finer[i] == finer[j])


@st.composite
def two_partitions(draw):
    size = draw(st.integers(1, 5))
    every = all_partitions(size)
    return size, draw(st.sampled_from(every)), draw(st.sampled_from(every))


def test_there_are_as_many_partitions_as_bell_numbers():
    assert [len(all_partitions(n)) for n in range(6)] == [1, 1, 2, 5, 15, 52]


@given(two_partitions())
def test_the_join_is_the_finest_common_coarsening(case):
    size, one, other = case
    above = [p for p in all_partitions(size) if slow_refines(one, p) and slow_refines(other, p)]
    finest = [p for p in above if all(slow_refines(p, q) for q in above)]
    assert len(finest) == 1
    assert tuple(join_partitions(np.array(one), np.array(other)).tolist()) == finest[0]


@given(two_partitions())
def test_the_meet_is_the_coarsest_common_refinement(case):
    size, one, other = case
    below = [p for p in all_partitions(size) if slow_refines(p, one) and slow_refines(p, other)]
    coarsest = [p for p in below if all(slow_refines(q, p) for q in below)]
    assert len(coarsest) == 1
    assert tuple(meet(np.array(one), np.array(other)).tolist()) == coarsest[0]


@given(two_partitions())
def test_refinement_by_representatives_is_that_of_pairs(case):
    _, one, other = case
    assert refines(np.array(one), np.array(other)) == slow_refines(one, other)


@given(st.lists(st.integers(-3, 6), max_size=30))
def test_equal_partitions_have_one_canonical_form(labels):
    form = canonical(labels)
    assert canonical([label * 7 + 100 for label in labels]).tolist() == form.tolist()
    assert group_count(form) == len(set(labels))
    assert is_discrete(form) == (len(set(labels)) == len(labels))
    firsts = [labels.index(label) for label in labels]
    assert representatives(form).tolist() == firsts


@given(
    st.integers(1, 8).flatmap(
        lambda n: st.tuples(
            st.just(n),
            st.lists(st.tuples(st.integers(0, n - 1), st.integers(0, n - 1)), max_size=20),
        )
    )
)
def test_components_are_those_of_a_search_from_vertex_to_vertex(case):
    size, edges = case
    left = np.array([a for a, _ in edges], dtype=np.int64)
    right = np.array([b for _, b in edges], dtype=np.int64)
    found = np.concatenate(components(left, right, size, size)).tolist()
    label = list(range(2 * size))
    for _ in label:
        for a, b in edges:
            label[a] = label[size + b] = min(label[a], label[size + b])
    assert found == canonical(label).tolist()


def test_a_long_chain_is_one_component():
    steps = np.repeat(np.arange(20_000), 2)
    order = np.random.default_rng(1).permutation(20_001)
    ends = order[steps + np.tile([0, 1], 20_000)]
    left, right = components(steps, ends, 20_000, 20_001)
    assert left.max() == 0
    assert right.max() == 0


def test_long_and_short_partitions_are_treated_alike():
    random = np.random.default_rng(3)
    labels = random.integers(0, 50, 2_000)
    numbers: dict[int, int] = {}
    expected = [numbers.setdefault(label, len(numbers)) for label in labels.tolist()]
    assert canonical(labels).tolist() == expected
    other = canonical(random.integers(0, 1_500, 2_000))
    assert refines(canonical(labels), join_partitions(canonical(labels), other))
    assert refines(other, join_partitions(canonical(labels), other))


@given(st.lists(st.integers(0, 4), min_size=1, max_size=12), st.data())
def test_entropy_is_that_of_the_shares(labels, data):
    weights = data.draw(
        st.lists(st.floats(0.5, 9), min_size=len(labels), max_size=len(labels)), label="weights"
    )
    form = canonical(labels)
    shares: dict[int, float] = {}
    for label, weight in zip(labels, weights, strict=True):
        shares[label] = shares.get(label, 0) + weight / sum(weights)
    expected = -sum(p * math.log2(p) for p in shares.values())
    assert math.isclose(partition_entropy(form, np.array(weights)), expected, abs_tol=1e-9)
    assert math.isclose(
        partition_entropy(np.arange(len(labels))), math.log2(len(labels)), abs_tol=1e-9
    )


def test_entropy_of_nothing_is_none():
    assert partition_entropy(np.zeros(3, dtype=np.int64)) == 0
    assert partition_entropy(np.zeros(0, dtype=np.int64)) == 0
    assert partition_entropy(np.arange(3), np.array([0.0, 2, 0])) == 0
