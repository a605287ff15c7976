"""Small runs of every kind, for tampering with: values, facts and checksums."""

import hashlib
import io
import json

import numpy as np

from featstream import (
    OFS,
    OGFS,
    OSFS,
    SAOLA,
    AlphaInvesting,
    FastOSFS,
    Grafting,
    GroupSAOLA,
)
from featstream.runs.arrays import read_arrays, write_arrays
from featstream.runs.folder import seal

LABELS = np.repeat(["a", "b", "c", "d"], 3)
SCATTERED = np.arange(12) % 5

KINDS = {
    "SAOLA-su": (SAOLA(measure="su"), {}),
    "SAOLA-fisher-z": (SAOLA(measure="fisher-z"), {}),
    "groups": (GroupSAOLA(measure="su"), {"groups": LABELS}),
    "scattered": (GroupSAOLA(measure="fisher-z"), {"groups": SCATTERED}),
    "OSFS-g2": (OSFS(test="g2", alpha=0.3), {}),
    "FastOSFS-chi2": (FastOSFS(test="chi2", alpha=0.3), {}),
    "FastOSFS-fisher-z": (FastOSFS(test="fisher-z", alpha=0.3), {}),
    "AlphaInvesting": (AlphaInvesting(wealth=3.0), {}),
    "AlphaInvesting-logistic": (AlphaInvesting(wealth=3.0, loss="logistic"), {}),
    "Grafting": (Grafting(l1=0.05), {}),
    "OGFS": (OGFS(penalty=0.05), {"groups": SCATTERED}),
    "OFS": (OFS(3), {}),
    "OFS-partial": (OFS(3, information="partial", random_state=0), {}),
}
"""Every kind of state, with the options of `consume`."""

PAIRWISE = ("SAOLA-su", "SAOLA-fisher-z", "groups", "scattered")
"""Kinds that keep columns as they are stored."""


def small_data():
    rng = np.random.default_rng(0)
    y = rng.integers(0, 2, 24)
    X = rng.integers(0, 3, (24, 12)) * (rng.random((24, 12)) < 0.7)
    X[:, 3] = rng.integers(0, 50, 24)
    X[:, ::4] += 2 * y[:, None]
    return X, y


def save_run(kind, folder, X):
    """A finished run of one kind, and two generations."""
    selector, how = KINDS[kind]
    y = small_data()[1]
    if isinstance(selector, OFS):
        selector.fit(X, y).save(folder).save()
    else:
        selector.start(y).consume(X, checkpoint=folder, every=1e6, **how)


def go_on(selector):
    """Use a selector for what it is there for."""
    X, y = small_data()
    if isinstance(selector, OFS):
        if selector.n_features_in_ == X.shape[1] and selector.classes_.size == 2:
            selector.partial_fit(X, selector.classes_[y])
        assert np.isfinite(selector.scores_).all()
        return
    for arrival in range(min(selector.n_seen_, 40)):
        selector.explain(arrival)
    selector._run = None
    if len(selector._stream.y) == len(y):
        how = {"groups": LABELS[:4] + "x"} if hasattr(selector, "group_of_") else {}
        selector.consume(X[:, :4], **how)
    selector.result_.to_dict()
    assert selector.support_.sum() == selector.selected_.size


def reseal(folder, arrays=None, facts=None):
    """Write another state or description into a run, with right checksums."""
    path = newest_state(folder)
    if arrays is not None:
        file = io.BytesIO()
        write_arrays(file, arrays)
        path.write_bytes(file.getvalue())
    content = json.loads((folder / "run.json").read_bytes())
    content.pop("sha256")
    content |= facts or {}
    content["files"] = {path.name: hashlib.sha256(path.read_bytes()).hexdigest()}
    (folder / "run.json").write_bytes(seal(content))
    (folder / "previous.json").unlink(missing_ok=True)


def newest_state(folder):
    return max(folder.glob("state-*.npz"))


def arrays_of_run(folder):
    return read_arrays(newest_state(folder))
