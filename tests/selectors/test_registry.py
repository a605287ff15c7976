"""The registry of selectors: names, classes, selectors from outside."""

import os
import sys

import pytest

from crash_runs import run_python
from featstream import SAOLA
from featstream.errors import ParameterError
from featstream.selectors.registry import MODULES, SELECTORS, Registry


def test_every_name_has_its_class():
    for name in SELECTORS:
        found = SELECTORS[name]
        assert SELECTORS.find_class(found.__name__) is found
        assert found().get_params() is not None
    assert SELECTORS["saola"] is SAOLA
    assert SELECTORS.find_class("Unheard") is None
    with pytest.raises(ParameterError, match="Did you mean 'saola'"):
        SELECTORS["soala"]


def test_a_name_or_a_class_name_is_registered_once():
    registry = Registry({"saola": "featstream.selectors:SAOLA"})

    class Mine(SAOLA):
        pass

    registry.register("mine", Mine)
    registry.register("mine", Mine)  # a module may be imported twice
    assert registry["mine"] is Mine
    assert registry.find_class("Mine") is Mine
    with pytest.raises(ParameterError, match="already"):
        registry.register("saola", Mine)
    with pytest.raises(ParameterError, match="already"):
        registry.register("other", type("SAOLA", (SAOLA,), {}))
    for name in ("My Selector", "", None):
        with pytest.raises(ParameterError, match="lower-case"):
            registry.register(name, Mine)


def test_modules_in_the_environment_register_their_selectors(tmp_path):
    (tmp_path / "outside.py").write_text(
        "from featstream import SAOLA\n"
        "from featstream.selectors import register\n"
        "class Outside(SAOLA):\n    pass\n"
        "register('outside', Outside)\n"
    )
    code = "from featstream.selectors import SELECTORS; print(SELECTORS['outside'])"
    path = os.pathsep.join([str(tmp_path), *sys.path])
    found = run_python(code, PYTHONPATH=path, **{MODULES: "outside"}).stdout
    assert "outside.Outside" in found
