"""Selection in an AnnData object, as scanpy's functions work."""

import numpy as np
import pandas as pd
import pytest
from scipy import sparse

import featstream
from featstream import SAOLA, GroupSAOLA, SelectFromStream, errors, select_genes
from featstream.datasets import make_stream

anndata = pytest.importorskip("anndata", reason="anndata is not installed")

STREAM = make_stream(200, 300, kind="continuous", seed=3)
ADDED = ["selected", "selected_relevance", "selected_fate", "selected_reason"]
FORMATS = {"dense": np.asarray, "csr": sparse.csr_matrix, "csc": sparse.csc_matrix}


def cells(X=STREAM.X, **parts):
    obs = pd.DataFrame({"cell_type": np.where(STREAM.y, "T", "B")})
    var = pd.DataFrame({"length": range(300)}, index=STREAM.names)
    adata = anndata.AnnData(X, obs.rename(str), var, **parts)
    adata.uns["before"] = [1, 2]
    return adata


@pytest.fixture(scope="module")
def fitted():
    return SelectFromStream().fit(STREAM.source(), STREAM.y)


@pytest.mark.parametrize("kind", FORMATS)
def test_it_writes_the_selection_and_leaves_the_rest_alone(fitted, kind):
    adata = cells(FORMATS[kind](STREAM.X))
    before = adata.copy()
    result = select_genes(adata, "cell_type")
    assert adata.var["selected"].to_numpy().tolist() == fitted.support_.tolist()
    kept = adata.var[adata.var["selected"]]
    np.testing.assert_allclose(
        kept["selected_relevance"][[*result.names]], result.scores
    )
    assert set(kept["selected_fate"]) == {"kept"}
    dropped = int(STREAM.redundant[0])
    assert adata.var["selected_reason"].iloc[dropped] == fitted.explain(dropped)
    counts = fitted.result_.trace.counts()
    found = adata.var["selected_fate"].value_counts().to_dict()
    assert found == {fate: n for fate, n in counts.items() if n}
    assert type(adata.X) is type(before.X)
    assert (adata.X != before.X).sum() == 0
    pd.testing.assert_frame_equal(adata.obs, before.obs)
    pd.testing.assert_frame_equal(adata.var.drop(columns=ADDED), before.var)
    assert adata.uns.pop("selected")["n_selected"] == len(result)
    assert adata.uns == before.uns
    assert not adata.layers


def test_a_layer_is_read_and_what_is_added_is_saved_with_the_object(tmp_path):
    adata = cells(np.zeros_like(STREAM.X))
    adata.layers["log"] = STREAM.X
    select_genes(adata, "cell_type", selector=SAOLA(measure="fisher-z"), layer="log")
    assert adata.var["selected"].any()
    adata.write_h5ad(tmp_path / "cells.h5ad")
    back = anndata.read_h5ad(tmp_path / "cells.h5ad")
    pd.testing.assert_frame_equal(back.var, adata.var, check_dtype=False)
    said = back.uns["selected"]
    assert (said["selector"], said["layer"]) == ("SAOLA", "log")
    assert said["featstream"] == featstream.__version__
    assert said["parameters"]["bound"] == "min"


@pytest.mark.parametrize("kind", FORMATS)
def test_the_file_of_a_backed_object_is_not_changed(fitted, kind, tmp_path):
    path = tmp_path / "cells.h5ad"
    cells(FORMATS[kind](STREAM.X)).write_h5ad(path)
    before = path.read_bytes()
    adata = anndata.read_h5ad(path, backed="r")
    select_genes(adata, "cell_type", key_added="mine")
    assert adata.isbacked
    assert adata.var["mine"].to_numpy().tolist() == fitted.support_.tolist()
    adata.file.close()
    assert path.read_bytes() == before


def test_what_is_not_traced_has_no_reason():
    adata = cells()
    select_genes(adata, "cell_type", selector=SelectFromStream(trace="kept"))
    unknown = adata.var[adata.var["selected_fate"] == "dropped"]
    assert len(unknown) > 250
    assert set(unknown["selected_reason"]) == {""}
    assert unknown["selected_relevance"].isna().all()


def test_other_variables_of_raw_are_refused():
    adata = cells()
    adata.raw = adata
    adata = adata[:, :100].copy()
    with pytest.raises(errors.DataError, match=r"adata\.raw\.to_adata\(\)"):
        select_genes(adata, "cell_type", layer="raw")
    assert "selected" not in adata.var


def test_wrong_arguments_are_refused(monkeypatch):
    with pytest.raises(
        errors.DataTypeError, match=r"Got ndarray\. Open a file with anndata"
    ):
        select_genes(STREAM.X, "cell_type")
    with pytest.raises(errors.DataError, match="no column 'cell type'"):
        select_genes(cells(), "cell type")
    with pytest.raises(errors.ParameterError, match="one by one"):
        select_genes(cells(), "cell_type", selector=GroupSAOLA())
    monkeypatch.setattr("featstream.sources.open.find_spec", lambda name: None)
    with pytest.raises(errors.MissingExtraError, match="extra 'science'"):
        select_genes(None, "cell_type")
