"""
The words that tell three novels apart
======================================

Words and pairs of words of 1,200 passages by Jane Austen arrive in alphabetical
order. Which of them say from which novel a passage comes?
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.feature_extraction.text import CountVectorizer

from featstream import SelectFromStream
from featstream.datasets import load_novels
from featstream.reporting import plot_size
from featstream.sources import SparseSource

novels = load_novels()
vectorizer = CountVectorizer(binary=True, ngram_range=(1, 2))
X = vectorizer.fit_transform(novels.texts)
words = vectorizer.get_feature_names_out()

selector = SelectFromStream().start(novels.target).consume(SparseSource(X, words))
result = selector.result_
print(result)

# %%
# The share of the passages of each novel that have the twelve most relevant words.
# Most are names.

top = np.argsort(-result.scores)[:12]
columns = X[:, result.indices[top]].toarray()
figure, ax = plt.subplots(figsize=(8, 4.5), layout="constrained")
for k, (novel, hatch) in enumerate(zip(novels.names, ("", "//", ".."), strict=True)):
    share = columns[novels.target == novel].mean(axis=0)
    ax.barh(np.arange(12) + 0.27 * k, share, 0.25, label=novel, hatch=hatch)
ax.set_yticks(np.arange(12) + 0.27, [result.names[i] for i in top])
ax.set_xlabel("share of the passages")
ax.invert_yaxis()
ax.legend()

# %%
# A word may be displaced by a better one. The size of the kept set says so:

plot_size(result)

# %%
# Why was a word dropped?

for word in ("mr darcy", "miss woodhouse", "the"):
    print(selector.explain(word))

plt.show()
