"""
The timeline of a selection
===========================

Dorothea (NIPS 2003): 100,000 binary features of 800 molecules. SAOLA sees each
feature once; a feature that it keeps may be displaced by a better one later.

Run with the folder of the data set's ``dorothea.npz`` as argument, it writes
``timeline.png``; without one, a generated stream is drawn.
"""

import sys
from pathlib import Path

import matplotlib.pyplot as plt

from featstream import SAOLA, SymmetricalUncertainty
from featstream.datasets import make_stream
from featstream.reporting import plot_size, plot_timeline

if len(sys.argv) > 1:
    data = Path(sys.argv[1]) / "dorothea.npz"
    selector = SAOLA(measure=SymmetricalUncertainty(threshold=0.0)).fit(data)
else:
    stream = make_stream(n_features=20_000, kind="continuous")
    selector = SAOLA(correction="online-fdr").fit(stream.X, stream.y)

figure, (above, below) = plt.subplots(
    2, figsize=(8, 5), height_ratios=(2, 1), sharex=True, layout="constrained"
)
plot_timeline(selector.result_, ax=above).set_xlabel("")
plot_size(selector.result_, ax=below)
if len(sys.argv) > 1:
    figure.savefig("timeline.png", dpi=130)
plt.show()
