"""The examples in the docstrings of ``worker.write`` run as they stand (behaviour: 10; issue 8)."""

from __future__ import annotations

import doctest
import inspect
from importlib import import_module

from sqlalchemy import Engine

import worker.write as write

FUNCTIONS = [name for name in write.__all__ if inspect.isfunction(getattr(write, name))]


def test_the_example_of_every_function_runs(database: Engine) -> None:
    assert database
    for name in FUNCTIONS:
        function = getattr(write, name)
        module = import_module(function.__module__)
        (example,) = doctest.DocTestFinder(recurse=False).find(function, name, module, dict(vars(module)))
        assert example.examples, f"{name} has no example"
        assert doctest.DocTestRunner(verbose=False).run(example).failed == 0, name
