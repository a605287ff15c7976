"""The checkers of parameters say what is wrong, what was given and what to do."""

import numpy as np
import pytest

from featstream.errors import (
    ParameterError,
    as_bytes,
    check_alpha,
    check_choice,
    check_count,
    check_number,
)


@pytest.mark.parametrize(
    ("check", "text"),
    [
        (
            lambda: check_choice("mim", "bound", ("min", "max"), "SAOLA"),
            "`bound` of SAOLA must be 'min' or 'max'. Got 'mim'. Did you mean 'min'?",
        ),
        (
            lambda: check_choice(1, "trace", ("full", "kept", None)),
            "`trace` must be 'full', 'kept' or None. Got 1.",
        ),
        (
            lambda: check_choice([], "trace", ("full",)),
            "`trace` must be 'full'. Got [].",
        ),
        (
            lambda: check_count(True, "n_bins", "SU", least=2),
            "`n_bins` of SU must be an integer of at least 2. Got True.",
        ),
        (
            lambda: check_count(4, "k", most=3),
            "`k` must be an integer from 1 to 3. Got 4.",
        ),
        (
            lambda: check_number(np.nan, "l1", "Grafting"),
            "`l1` of Grafting must be a positive number. Got nan.",
        ),
        (
            lambda: check_number(-1, "penalty", closed="left"),
            "`penalty` must be a number of at least 0. Got -1.",
        ),
        (
            lambda: check_number("1", "noise", high=1, closed="left", hint="Try 0.5."),
            "`noise` must be a number in [0, 1). Got '1'. Try 0.5.",
        ),
        (
            lambda: check_alpha(5, "FisherZ"),
            "`alpha` of FisherZ must be a number in (0, 1). Got 5. For a 5% level "
            "write alpha=0.05.",
        ),
        (
            lambda: as_bytes("much"),
            "`memory_limit` must be a size such as 500MB or 2GB. Got 'much'.",
        ),
    ],
)
def test_a_wrong_parameter_is_refused_in_one_sentence(check, text):
    with pytest.raises(ParameterError) as caught:
        check()
    assert str(caught.value) == text


def test_numbers_of_numpy_are_numbers():
    assert check_count(np.int32(3), "k") == 3
    assert check_count(None, "k", none="for no limit") is None
    assert check_number(np.float32(0.5), "x", high=1) == 0.5
    assert check_alpha(np.float64(0.01)) == 0.01
