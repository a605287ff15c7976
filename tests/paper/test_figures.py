"""What the paper's figures say of the values they lack."""

from types import SimpleNamespace

from featstream.paper.exhibits import find
from featstream.paper.figures import FigureData
from featstream.paper.findings import Value

SLOW = "exceeded 60 s"


def figure(name, reasons):
    def value(design, dataset, method, metric, judge):
        return Value(0.5, reason=reasons.get((dataset, method)))

    about = dict.fromkeys(dataset for dataset, _ in reasons) | {"poker": None}
    return FigureData(find(name), SimpleNamespace(about=about, value=value))


def test_missing_values_have_their_reasons():
    methods = find("figure5").methods
    everyone = {("covtype", method): SLOW for method in methods}
    some = {("connect-4", "Fast-OSFS"): SLOW, ("connect-4", "OFS"): "no memory"}
    assert figure("figure5", everyone | some).gaps() == (
        f"{SLOW} (connect-4: Fast-OSFS, covtype); no memory (connect-4: OFS)"
    )


def test_a_figure_without_gaps_has_nothing_to_say():
    assert figure("figure5", {}).gaps() == ""
