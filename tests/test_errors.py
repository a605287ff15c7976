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


def test_a_wrong_parameter_is_refused_in_one_sentence():
    def refused(text, check, value, *given, **options):
        with pytest.raises(ParameterError) as caught:
            check(value, *given, **options)
        assert str(caught.value) == text

    text = "`bound` of SAOLA must be 'min' or 'max'. Got 'mim'. Did you mean 'min'?"
    refused(text, check_choice, "mim", "bound", ("min", "max"), "SAOLA")
    text = "`trace` must be 'full', 'kept' or None. Got []."
    refused(text, check_choice, [], "trace", ("full", "kept", None))
    text = "`n_bins` of SU must be an integer of at least 2. Got True."
    refused(text, check_count, True, "n_bins", "SU", least=2)
    text = "`k` must be an integer from 1 to 3, or None for all. Got 4."
    refused(text, check_count, 4, "k", most=3, none="for all")
    text = "`l1` of Grafting must be a positive number. Got nan."
    refused(text, check_number, np.nan, "l1", "Grafting")
    text = "`penalty` must be a number of at least 0. Got -1."
    refused(text, check_number, -1, "penalty", closed="left")
    text = "`noise` must be a number in [0, 1). Got '1'. Try 0.5."
    refused(text, check_number, "1", "noise", high=1, closed="left", hint="Try 0.5.")
    text = "`alpha` must be a number in (0, 1). Got 5. For a 5% level write alpha=0.05."
    refused(text, check_alpha, 5)
    text = "`memory_limit` must be a size such as 500MB or 2GB. Got 'much'."
    refused(text, as_bytes, "much")


def test_numbers_of_numpy_are_numbers():
    assert check_count(np.int32(3), "k") == 3
    assert check_count(None, "k", none="for no limit") is None
    assert check_number(np.float32(0.5), "x", high=1) == 0.5
    assert check_alpha(np.float64(0.01)) == 0.01
