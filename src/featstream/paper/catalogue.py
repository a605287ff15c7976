"""The data sets of the SAOLA paper, and the files in which they are found."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

from featstream.paper.formats import (
    Reader,
    gene_table,
    index_lists,
    index_values,
    letter_table,
    npz,
    number_table,
    plain_rows,
    sample_of_svmlight,
    some_of_svmlight,
    svmlight,
    thrombin_rows,
    unit_rows,
)

__all__ = ["CATALOGUE", "Entry", "Files", "Kind"]

Kind: TypeAlias = Literal["continuous", "discrete"]


@dataclass(frozen=True, slots=True)
class Files:
    """Files that hold a data set, named as they are distributed.

    Attributes
    ----------
    reader : callable
        Reads the files of one part.
    train, test : tuple of str
        Their names; `test` is empty if there is but one part, or if the reader
        finds both in `train`.
    differs : str
        How the data differ from the paper's; "" if they do not.
    remark : str
        What else there is to know.
    n_features : int
        Where it is not that of the paper.
    """

    reader: Reader
    train: tuple[str, ...]
    test: tuple[str, ...] = ()
    differs: str = ""
    remark: str = ""
    n_features: int | None = None


@dataclass(frozen=True, slots=True)
class Entry:
    """A data set.

    Attributes
    ----------
    kind : {"continuous", "discrete"}
        How the paper treats it: Fisher's Z, or symmetrical uncertainty.
    n_features : int
        As the paper counts them.
    source : str
        Who publishes it.
    files : tuple of Files
        Ways in which it may be stored, the best first.
    is_split : bool
        Whether the paper uses the published training and test parts, or draws its
        own from all rows.
    """

    kind: Kind
    n_features: int
    source: str
    files: tuple[Files, ...]
    is_split: bool = False


def _challenge(name: str, reader: Reader) -> Files:
    """The file names of the NIPS 2003 and WCCI 2006 challenges."""
    train, test = (
        (f"{name}_{part}.data", f"{name}_{part}.labels") for part in ("train", "valid")
    )
    return Files(reader, train, test)


def _libsvm(name: str, *, has_test: bool = False, differs: str = "") -> Files:
    return Files(svmlight, (name,), (f"{name}.t",) * has_test, differs)


_NIPS = "NIPS 2003 feature selection challenge; UCI has it"
_LIBSVM = "LIBSVM data sets"
_UCI = "UCI machine learning repository"
_KENT_RIDGE = "Kent Ridge biomedical data sets"
_NOT_PUBLIC = "not found in public: Aliferis et al., JMLR 11, 2010"

CATALOGUE: dict[str, Entry] = {
    "madelon": Entry(
        "continuous",
        500,
        _NIPS,
        (_challenge("madelon", plain_rows), _libsvm("madelon", has_test=True)),
        is_split=True,
    ),
    "hiva": Entry(
        "discrete",
        1617,
        "WCCI 2006 performance prediction challenge",
        (
            _challenge("hiva", plain_rows),
            Files(npz, ("hiva_train.npz",), remark="the training part only"),
        ),
        is_split=True,
    ),
    "leukemia": Entry(
        "continuous",
        7129,
        f"Golub et al. 1999; {_KENT_RIDGE}",
        (
            Files(gene_table, ("AMLALL_train.data",), ("AMLALL_test.data",)),
            _libsvm("leu", has_test=True, differs="rows and columns scaled by LIBSVM"),
        ),
    ),
    "lung-cancer": Entry(
        "continuous",
        12533,
        f"Gordon et al. 2002; {_KENT_RIDGE}",
        (Files(gene_table, ("lungCancer_train.data",), ("lungCancer_test.data",)),),
    ),
    "ohsumed": Entry("continuous", 14373, _NOT_PUBLIC, ()),
    "breast-cancer": Entry("continuous", 17816, _NOT_PUBLIC, ()),
    "dexter": Entry(
        "continuous", 20000, _NIPS, (_challenge("dexter", index_values),), is_split=True
    ),
    "apcj-etiology": Entry("continuous", 28228, _NOT_PUBLIC, ()),
    "dorothea": Entry(
        "discrete", 100000, _NIPS, (_challenge("dorothea", index_lists),), is_split=True
    ),
    "thrombin": Entry(
        "discrete",
        139351,
        "KDD Cup 2001",
        (
            Files(
                thrombin_rows,
                ("thrombin.data",),
                ("Thrombin.testset", "ThrombinKey"),
            ),
            Files(npz, ("thrombin_train.npz",), differs="1,909 of 2,543 rows (train)"),
        ),
    ),
    "news20": Entry(
        "continuous",
        1355191,
        _LIBSVM,
        (
            Files(some_of_svmlight(0, 9996, 10000), ("news20.binary",)),
            Files(
                unit_rows,
                ("news20_bigram.npz",),
                differs="words and pairs of words rebuilt from 20 Newsgroups",
                n_features=1450546,
            ),
        ),
        is_split=True,
    ),
    "url1": Entry(
        "continuous",
        3231961,
        "Ma et al. 2009; UCI has it by day, LIBSVM as one",
        (
            Files(svmlight, ("Day1.svm",), ("Day2.svm",)),
            Files(
                some_of_svmlight(16000, 20000, 20000),
                ("url_combined",),
                remark="rows 16,001 to 56,000: day 0 has 16,000 rows",
            ),
        ),
        is_split=True,
    ),
    "webspam": Entry(
        "continuous",
        16609143,
        _LIBSVM,
        (
            Files(
                sample_of_svmlight(98000),
                ("webspam_wc_normalized_trigram.svm",),
                remark="98,000 random rows, of which the paper's splits are drawn",
            ),
        ),
    ),
    "kdd2010": Entry(
        "continuous",
        29890095,
        _LIBSVM,
        (
            Files(
                sample_of_svmlight(120000),
                ("kddb",),
                remark="120,000 random rows, of which the paper's splits are drawn",
            ),
            Files(
                sample_of_svmlight(120000),
                ("kdda",),
                differs="algebra instead of bridge to algebra",
                n_features=20216830,
            ),
        ),
    ),
    "arcene": Entry(
        "continuous", 10000, _NIPS, (_challenge("arcene", plain_rows),), is_split=True
    ),
    "gisette": Entry(
        "continuous",
        5000,
        _NIPS,
        (
            _challenge("gisette", plain_rows),
            Files(
                svmlight,
                ("gisette_scale",),
                ("gisette_scale.t",),
                remark="columns scaled by LIBSVM",
            ),
            Files(
                npz,
                ("gisette_valid.npz",),
                differs="the 1,000 validation rows alone, without the training part",
            ),
        ),
        is_split=True,
    ),
    "connect-4": Entry(
        "discrete",
        126,
        f"{_UCI}; LIBSVM",
        (
            Files(letter_table, ("connect-4.data",)),
            _libsvm("connect-4"),
            Files(npz, ("connect4.npz",)),
        ),
    ),
    "ijcnn1": Entry("continuous", 22, _LIBSVM, (_libsvm("ijcnn1", has_test=True),)),
    "covtype": Entry(
        "continuous",
        54,
        f"{_UCI}; LIBSVM",
        (
            Files(number_table, ("covtype.data",)),
            _libsvm("covtype"),
            _libsvm("covtype.libsvm.binary", differs="two classes instead of seven"),
        ),
    ),
    "poker": Entry(
        "discrete",
        10,
        f"{_UCI}; LIBSVM",
        (
            Files(
                number_table,
                ("poker-hand-training-true.data",),
                ("poker-hand-testing.data",),
            ),
            _libsvm("poker", has_test=True),
            Files(
                npz,
                ("poker_train.npz",),
                differs="25,010 of 1,025,010 rows (train)",
            ),
        ),
    ),
    "real-sim": Entry("continuous", 20958, _LIBSVM, (_libsvm("real-sim"),)),
}
"""Table 2 of the paper; then the sets of Tables 14 to 17 and of Table 9."""
