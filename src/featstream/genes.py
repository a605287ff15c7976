"""Selection among the variables of an AnnData object, as scanpy's functions work."""

from __future__ import annotations

from typing import Any

import numpy as np

import featstream
from featstream.errors import DataError, DataTypeError, ParameterError, printable
from featstream.selectors import SelectFromStream
from featstream.selectors.result import SelectionResult
from featstream.sources import open_anndata
from featstream.sources.open import require


def select_genes(
    adata: Any,
    target: str,
    *,
    selector: Any = None,
    layer: str | None = None,
    key_added: str = "selected",
    progress: bool = False,
) -> SelectionResult:
    """Select the variables of an AnnData object that tell classes of cells apart.

    Parameters
    ----------
    adata : anndata.AnnData
        Cells by genes, in memory or backed by a file, dense or sparse.
    target : str
        The column of ``adata.obs`` that has the class of each cell.
    selector : selector, default=None
        What selects; by default ``SelectFromStream()``. Selectors of groups are not
        supported.
    layer : str, default=None
        The layer to read; by default ``X``.
    key_added : str, default="selected"
        The column of ``adata.var`` that says which genes are selected. It begins the
        names of everything that is added.
    progress : bool, default=False
        Show a live line.

    Returns
    -------
    SelectionResult
        The selection, with its report and figures.

    Notes
    -----
    It adds to ``adata.var`` the columns ``selected`` (yes or no),
    ``selected_relevance`` (the score with the target), ``selected_fate`` (kept,
    irrelevant, redundant or displaced) and ``selected_reason`` (a sentence); and to
    ``adata.uns`` the entry ``selected``: selector, parameters, measure, version,
    target, layer and counts. Nothing else is changed. The file behind a backed
    object changes only if you write it.

    Examples
    --------
    >>> import anndata, numpy as np, pandas as pd, featstream
    >>> y = np.repeat(["B", "T"], 50)
    >>> rng = np.random.default_rng(1)
    >>> X = rng.normal(size=(100, 3)) + 2 * (y == "T")[:, None] * [1, 0, 0]
    >>> var = pd.DataFrame(index=["CD3E", "ACTB", "GAPDH"])
    >>> adata = anndata.AnnData(X, pd.DataFrame({"cell_type": y}).rename(str), var)
    >>> featstream.select_genes(adata, "cell_type")
    SelectionResult(1 of 3 features · SelectFromStream/fisher-z · ...)
    >>> adata.var["selected"].tolist()
    [True, False, False]
    >>> adata[:, adata.var["selected"]].shape
    (100, 1)
    """
    require("anndata", "science", "AnnData objects")
    import anndata

    if not isinstance(adata, anndata.AnnData):
        raise DataTypeError(
            f"select_genes takes an AnnData object. Got {type(adata).__name__}. Open a "
            "file with anndata.read_h5ad(path), or use fit of a selector."
        )
    if selector is None:
        selector = SelectFromStream()
    elif not hasattr(selector, "consume") or hasattr(type(selector), "group_of_"):
        raise ParameterError(
            "`selector` of select_genes must select features that come one by one, "
            f"such as SelectFromStream() or SAOLA(). Got {printable(selector)}."
        )
    dataset = open_anndata(adata, target, layer=layer)
    if dataset.names != [str(name) for name in adata.var_names]:
        raise DataError(
            "adata.raw has other variables than adata, so that the selection cannot be "
            "written to adata.var. Give adata.raw.to_adata()."
        )
    selector.start(dataset.y).consume(dataset.source, progress=progress)
    result: SelectionResult = selector.result_
    for name, values in _columns(selector, adata.n_vars).items():
        adata.var[key_added + name] = values
    adata.uns[key_added] = _provenance(result, target, layer)
    return result


def _columns(selector: Any, n_vars: int) -> dict[str, Any]:
    """New columns of ``adata.var``, by the end of their names."""
    import pandas as pd

    trace = selector.result_.trace
    fates = np.full(n_vars, "dropped", object)
    relevance = np.full(n_vars, np.nan)
    reasons = np.full(n_vars, "", object)
    for arrival in trace.arrivals.tolist():
        fates[arrival] = str(trace.fate(arrival))
        relevance[arrival] = trace.relevance(arrival)
        reasons[arrival] = selector.explain(arrival)
    relevance[selector.selected_] = selector.scores_
    return {
        "": selector.support_,
        "_relevance": relevance,
        "_fate": pd.Categorical(fates),
        "_reason": reasons,
    }


def _provenance(
    result: SelectionResult, target: str, layer: str | None
) -> dict[str, Any]:
    """How the selection was made, in values that an ``.h5ad`` file can hold."""
    given = {name: x for name, x in result.parameters.items() if x is not None}
    return {
        "featstream": featstream.__version__,
        "selector": result.selector,
        "parameters": given,
        "measure": result.measure,
        "target": target,
        "layer": "X" if layer is None else layer,
        "n_samples": result.n_samples,
        "n_features": result.n_features,
        "n_selected": len(result),
    }
