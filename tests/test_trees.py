"""PU Extra Trees: closed forms, the plain reference, scikit-learn's own checks, extremes."""

from __future__ import annotations

import math
import random
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.stats import chi2_contingency, ks_2samp
from sklearn.exceptions import NotFittedError
from sklearn.utils.estimator_checks import parametrize_with_checks

import reference_trees as reference
from thonecls import trees
from thonecls.errors import ConfigError, LabelError
from thonecls.trees import (
    Impurity,
    Loss,
    Nodes,
    PUExtraTreesClassifier,
    Risk,
    Trees,
    extremes,
    feature_keys,
    grow_trees,
    key_values,
    round_down,
    sort_keys,
)

# Of 10 positives and 100 unlabeled at π = 0.3: (a, b) and v, from the paper's formulas by hand.
# Unless mended, rounding takes the last two below 1/2 and 1.
NODES = {(5, 20): 0.75, (5, 0): math.inf, (9, 20): 1.35, (0, 7): 0.0, (9, 54): 0.5, (9, 27): 1.0}


class Always:
    """A source of randomness that always says the same, for the trees and the reference."""

    def __init__(self, value: float) -> None:
        self.value = value

    def random(self, size: int | tuple[int, ...] | None = None) -> Any:
        return self.value if size is None else np.full(size, self.value)


def blobs(
    positives: int, unlabeled: int, width: int, seed: int = 0, shift: float = 1.5
) -> tuple[NDArray[np.float32], NDArray[np.bool_], NDArray[np.bool_]]:
    """Features, labels and truth; 40 % of the unlabeled are positive, told by three features."""
    rng = np.random.default_rng(seed)
    labels = np.arange(positives + unlabeled) < positives
    truth = labels | (rng.random(labels.size) < 0.4)
    x = rng.normal(size=(labels.size, width)).astype(np.float32)
    x[truth, :3] += np.float32(shift)
    return x, labels, truth


def forest(**settings: Any) -> PUExtraTreesClassifier:
    return PUExtraTreesClassifier(
        **{"prior": 0.4, "n_estimators": 15, "random_state": 0} | settings
    )


def risk_of(loss: Loss, impurity: Impurity = "quadratic") -> Risk:
    return Risk(prior=0.3, n_positive=10, n_unlabeled=100, loss=loss, impurity=impurity)


def counts() -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    a, b = np.array(list(NODES)).T
    return a, b


def test_the_positive_share_and_the_vote_of_nodes_are_those_by_hand() -> None:
    risk = risk_of("nnpu")
    assert risk.share(*counts()) == pytest.approx(list(NODES.values()))
    assert risk.share(*counts())[-2:].tolist() == [0.5, 1.0]
    for coin, tied in ((0.2, True), (0.7, False)):
        votes = risk.votes(*counts(), Always(coin))  # type: ignore[arg-type]
        assert votes.tolist() == [True, True, True, False, tied, True]


def test_impurities_are_those_by_hand() -> None:
    quadratic = [0.15, 0, 0, 0, 0.54, 0]
    assert risk_of("nnpu").impurities(*counts()) == pytest.approx(quadratic)
    # Below 0 for more positives than fit the prior: 4 × 0.2 × 1.35 × (1 - 1.35) = -0.378.
    unbounded = [0.15, -math.inf, -0.378, 0, 0.54, 0]
    assert risk_of("upu").impurities(*counts()) == pytest.approx(unbounded)
    entropy = 0.2 * (0.75 * math.log(4 / 3) + 0.25 * math.log(4))
    logistic = [entropy, 0, 0, 0, 0.54 * math.log(2), 0]
    assert risk_of("nnpu", "logistic").impurities(*counts()) == pytest.approx(logistic)
    logistic[1] = logistic[2] = -math.inf
    assert risk_of("upu", "logistic").impurities(*counts()) == pytest.approx(logistic)


def test_keys_have_the_order_of_the_values_and_give_them_back() -> None:
    big = np.finfo(np.float32).max
    values = np.array([-big, -2, -1e-45, -0.0, 0, 1e-45, 1, 1 + 2**-23, big], np.float32)
    keys = sort_keys(values)
    assert keys[3] == keys[4]
    assert (np.diff(np.delete(keys, 3).astype(np.int64)) > 0).all()
    assert np.array_equal(key_values(keys), values.astype(np.float64))
    assert np.array_equal(feature_keys(np.stack([values, -values], axis=1))[0], keys)


@pytest.mark.parametrize("dtype", [np.float32, np.uint8])
def test_extremes_are_the_two_smallest_and_largest_distinct_values_of_a_node(
    dtype: type[np.generic],
) -> None:
    rng = np.random.default_rng(0)
    sizes = np.array([2, 3, 30, 4, 2])
    x = rng.integers(0, 9, (6, sizes.sum())).astype(dtype)
    x[:, :2] = [0, 255]  # in the first node the two ends of uint8
    x[:, -2:] = 255  # and nothing but one end in the last
    nodes = Nodes(np.arange(5), sizes - 1, np.ones(5, np.int64), np.arange(sizes.sum()), depth=0)
    found = np.moveaxis(key_values(extremes(sort_keys(x), nodes)), 0, -1)
    for row, marks in zip(x, found, strict=True):
        for part, four in zip(np.split(row, sizes.cumsum()[:-1]), marks, strict=True):
            distinct = np.unique(part)
            some = [distinct[0], distinct[:2][-1], distinct[-2:][0], distinct[-1]]
            assert four.tolist() == some


def test_a_cut_rounded_down_parts_neighbouring_floats_as_the_cut_does() -> None:
    low = np.float32(1)
    high = np.nextafter(low, np.float32(2))
    cuts = low + (float(high) - float(low)) * np.array([0.4, 0.5, 0.6])
    assert (round_down(cuts) == low).all()


@pytest.mark.parametrize("always", [0.0, 0.3, 0.8])
@pytest.mark.parametrize("loss", ["nnpu", "upu"])
@pytest.mark.parametrize("impurity", ["quadratic", "logistic"])
@pytest.mark.parametrize("kind", ["floats", "few values", "bytes"])
def test_by_the_same_random_numbers_the_tree_is_that_of_the_reference(
    always: float, loss: Loss, impurity: Impurity, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    x, labels, _ = blobs(25, 130, 11, shift=0.8)
    if kind == "few values":  # so that features are constant in many nodes
        x = np.round(x).clip(-1, 1)
    if kind == "bytes":
        x = (x * 20 + 120).astype(np.uint8)
    if always == 0.8:  # the nodes in small parts, as those of a large scene are
        monkeypatch.setattr(trees, "POOL", 30)
        monkeypatch.setattr(trees, "BLOCK", 100)
    setting = reference.Setting(0.4, loss, impurity)
    (root,) = reference.fit(x.tolist(), labels.tolist(), setting, Always(always), trees=1)
    risk = Risk(0.4, 25, 130, loss, impurity)
    source: Any = Always(always)
    two = grow_trees(feature_keys(x), labels, risk, source, tries=4, count=2)
    assert same_nodes(two, 0, root) + same_nodes(two, 1, root) == len(two.feature) > 40


def same_nodes(trees: Trees, at: int, node: reference.Node) -> int:
    """How many nodes there are below and at one, after the check that they are the same."""
    assert trees.impurity[at] == pytest.approx(node.impurity)
    assert trees.feature[at] == node.feature
    if node.left is None or node.right is None:
        assert trees.vote[at] == node.vote
        return 1
    assert trees.cut[at] == round_down(np.array(node.cut))
    left = same_nodes(trees, int(trees.left[at]), node.left)
    return 1 + left + same_nodes(trees, int(trees.right[at]), node.right)


def test_random_features_and_cuts_have_the_distribution_of_the_reference() -> None:
    x, labels, _ = blobs(8, 24, 10, shift=0.4)
    x[:, 4] = 0
    count, setting = 1500, reference.Setting(0.4, max_depth=1)
    plain = reference.fit(x.tolist(), labels.tolist(), setting, random.Random(1), count)
    risk, rng = Risk(0.4, 8, 24), np.random.default_rng(1)
    ours = grow_trees(feature_keys(x), labels, risk, rng, count=count, tries=4, max_depth=1)
    features = np.array([ours.feature[:count], [node.feature for node in plain]])
    cuts = np.array([ours.cut[:count], [node.cut for node in plain]])
    often = np.array([np.bincount(side, minlength=10) for side in features])
    assert (often[:, 4] == 0).all()
    assert chi2_contingency(often[:, often.sum(axis=0) > 0]).pvalue > 0.01
    assert ks_2samp(cuts[0], cuts[1]).pvalue > 0.01


def test_forests_are_as_accurate_as_those_of_the_reference() -> None:
    x, labels, _ = blobs(30, 200, 6)
    unseen, _, answer = blobs(0, 400, 6, seed=1)
    ours, plain = [], []
    for seed in range(6):
        fitted = forest(random_state=seed).fit(x, labels)
        ours.append((fitted.predict(unseen) == answer).mean())
        setting, source = reference.Setting(0.4), random.Random(seed)
        nodes = reference.fit(x.tolist(), labels.tolist(), setting, source, trees=15)
        plain.append(np.mean([reference.predict(nodes, r) for r in unseen.tolist()] == answer))
    assert np.mean(ours) > 0.75
    spread = math.sqrt((np.var(ours, ddof=1) + np.var(plain, ddof=1)) / 6)
    assert abs(np.mean(ours) - np.mean(plain)) < 3 * spread


def test_every_leaf_obeys_a_rule_to_stop_and_no_other_node_does() -> None:
    x, labels, _ = blobs(30, 200, 5)
    risk = Risk(0.4, 30, 200)
    rng = np.random.default_rng(0)
    tree = grow_trees(feature_keys(x), labels, risk, rng, tries=3, max_depth=6, min_samples_leaf=9)
    size, depth = np.zeros(len(tree.feature)), np.zeros(len(tree.feature))
    for row in x:
        node = 0
        while tree.feature[node] >= 0:
            size[node] += 1
            left = row[tree.feature[node]] <= tree.cut[node]
            child = int(tree.left[node] if left else tree.right[node])
            depth[child] = depth[node] + 1
            node = child
        size[node] += 1
    stops = (tree.impurity <= 0) | (depth >= 6) | (size <= 9)
    assert np.array_equal(tree.feature < 0, stops)
    assert size.min() > 0
    assert depth.max() == 6


@pytest.mark.parametrize(("least", "nodes"), [(4, 1), (3, 3)])
def test_a_node_of_min_samples_leaf_samples_is_not_split(least: int, nodes: int) -> None:
    x = np.array([[0], [1], [0], [1]], np.uint8)
    labels = np.array([True, True, False, False])
    (tree,) = forest(n_estimators=1, min_samples_leaf=least).fit(x, labels).trees_
    assert len(tree.feature) == nodes


@parametrize_with_checks([PUExtraTreesClassifier(n_estimators=10)])  # type: ignore[untyped-decorator]
def test_it_is_a_scikit_learn_classifier(estimator: Any, check: Any) -> None:
    check(estimator)


@pytest.mark.parametrize("jobs", [1, 2])
def test_the_seed_decides_whatever_the_number_of_jobs(jobs: int) -> None:
    x, labels, _ = blobs(20, 100, 6)
    once, again = forest().fit(x, labels), forest(n_jobs=jobs).fit(x, labels)
    other = forest(random_state=1).fit(x, labels)
    assert np.array_equal(once.predict_proba(x), again.predict_proba(x))
    assert np.array_equal(once.feature_importances_, again.feature_importances_)
    assert not np.array_equal(once.predict_proba(x), other.predict_proba(x))


@pytest.mark.parametrize("rest", [0, -1, False])
def test_labels_may_be_one_and_zero_one_and_minus_one_or_bool(rest: int) -> None:
    x, labels, _ = blobs(20, 100, 6)
    expected = forest().fit(x, labels).predict_proba(x)[:, 1]
    y = np.where(labels, True if rest is False else 1, rest)
    fitted = forest().fit(x, y)
    assert np.array_equal(fitted.predict_proba(x)[:, 1], expected)
    assert np.array_equal(fitted.predict(x), np.where(expected > 0.5, y.max(), y.min()))
    assert fitted.predict(x).dtype == y.dtype


def test_bytes_floats_and_column_major_features_grow_the_same_trees() -> None:
    x, labels, _ = blobs(20, 100, 6)
    raw = (x * 20 + 120).astype(np.uint8)
    expected = forest().fit(raw, labels).predict_proba(raw)
    for same in (raw.astype(np.float32), raw.astype(np.float64), np.asfortranarray(raw)):
        assert np.array_equal(forest().fit(same, labels).predict_proba(same), expected)


def test_votes_of_half_of_the_trees_are_not_enough() -> None:
    x, labels, _ = blobs(20, 100, 6)
    fitted = forest(n_estimators=2).fit(x, labels)
    fitted.trees_ = [Trees.of_leaves(1, 1), Trees.of_leaves(1, 1)]
    fitted.trees_[0].vote[0] = True
    assert not fitted.predict(x).any()
    assert (fitted.predict_proba(x) == 0.5).all()
    assert (fitted.decision_function(x) == 0).all()


def test_importance_is_the_risk_that_splits_take_away() -> None:
    x, labels, _ = blobs(40, 300, 8, shift=2.5)
    stump = forest(n_estimators=1, max_depth=1).fit(x, labels)
    (tree,) = stump.trees_
    lost = tree.impurity[0] - tree.impurity[1] - tree.impurity[2]
    assert tree.gain[0] == pytest.approx(lost)
    assert stump.feature_importances_[tree.feature[0]] == 1
    many = forest(max_depth=5).fit(x, labels).feature_importances_
    assert many.sum() == pytest.approx(1)
    assert many[:3].min() > 2 * many[3:].max()
    assert np.isfinite(forest(loss="upu").fit(x, labels).feature_importances_).all()


def test_max_features_counts_shares_and_roots() -> None:
    tries = {"sqrt": 4, None: 11, 5: 5, 50: 11, 0.5: 6}
    assert {m: forest(max_features=m)._tries(11) for m in tries} == tries


@pytest.mark.parametrize(("prior", "answer"), [(0.3, False), (0.7, True)])
def test_where_no_feature_varies_the_prior_decides(prior: float, answer: bool) -> None:
    x, labels = np.ones((20, 3)), np.arange(20) < 5
    fitted = forest(prior=prior).fit(x, labels)
    assert (fitted.predict(x) == answer).all()
    assert (fitted.feature_importances_ == 0).all()


def test_constant_features_are_passed_over() -> None:
    x, labels, truth = blobs(40, 300, 60, shift=3.0)
    x[:, 1:] = 7  # one feature of 60 is left, which 8 draws would often miss
    fitted = forest().fit(x, labels)
    assert fitted.feature_importances_.tolist() == [1.0] + [0.0] * 59
    assert (fitted.predict(x) == truth).mean() > 0.85


def test_one_positive_among_many_is_found() -> None:
    x = np.arange(50, dtype=np.float32)[:, np.newaxis]
    fitted = forest(prior=0.1).fit(x, np.arange(50) == 49)
    assert fitted.predict(x)[49]
    assert not fitted.predict(x[:40]).any()


def test_unlabeled_samples_that_are_all_equal_are_told_from_the_positives() -> None:
    rng = np.random.default_rng(0)
    x = np.concatenate([rng.normal(size=(10, 4)), np.full((30, 4), 5.0)])
    labels = np.arange(40) < 10
    assert np.array_equal(forest().fit(x, labels).predict(x), labels)


@pytest.mark.parametrize("scale", [1e-38, 1e37])
def test_values_may_be_as_tiny_or_huge_as_float32_holds(scale: float) -> None:
    x, labels, truth = blobs(40, 300, 4, shift=3.0)
    x *= np.float32(scale)
    assert (forest().fit(x, labels).predict(x) == truth).mean() > 0.85


def test_values_beyond_float32_are_refused() -> None:
    x, labels, _ = blobs(5, 20, 3)
    huge = x.astype(np.float64)
    huge[0, 0] = 1e300
    with pytest.raises(ValueError, match="float32"):
        forest().fit(huge, labels)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("prior", None),
        ("prior", 0.0),
        ("prior", 1.0),
        ("prior", math.nan),
        ("loss", "pu"),
        ("impurity", "gini"),
        ("n_estimators", 0),
        ("n_estimators", True),
        ("max_depth", 0),
        ("min_samples_leaf", 0.5),
        ("max_features", 0),
        ("max_features", 1.5),
        ("max_features", "log2"),
    ],
)
def test_settings_out_of_range_are_refused_by_name(name: str, value: object) -> None:
    x, labels, _ = blobs(5, 20, 3)
    with pytest.raises(ConfigError, match=f"^{name} must be .* Got {value!r} instead"):
        forest(**{name: value}).fit(x, labels)


@pytest.mark.parametrize(
    ("y", "words"), [([1] * 25, "Got one class, 1"), ([0, 1, 2, 1, 0] * 5, "Only binary")]
)
def test_labels_of_one_kind_or_of_three_are_refused(y: list[int], words: str) -> None:
    x, _, _ = blobs(5, 20, 3)
    with pytest.raises(LabelError, match=words):
        forest().fit(x, y)


def test_a_forest_that_is_not_fitted_says_so() -> None:
    with pytest.raises(NotFittedError):
        forest().predict([[0.0]])
