"""Every planted fault can stand in for the function that it is about: seen at once, not when a broker breaks down."""

from __future__ import annotations

import inspect
from types import FunctionType

import pytest

from tests.crash import faults as crash
from tests.differential import faults as differential
from tests.http import test_ledger as ledger
from tests.support.planting import Fault

pytestmark = pytest.mark.pure

FAULTS: list[Fault] = [*crash.FAULTS, *differential.FAULTS, *ledger.FAULTS]


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.name)
def test_a_planted_fault_is_called_as_the_right_function_is(fault: Fault) -> None:
    if not isinstance(fault.right, FunctionType):
        pytest.skip("compiled functions do not say what they are called with")
    placed = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    given = [one for one in inspect.signature(fault.right).parameters.values() if one.kind in placed]
    most = ["right", *(one.name for one in given)]
    least = ["right", *(one.name for one in given if one.default is one.empty)]
    for arguments in (most, least):
        inspect.signature(fault.wrong).bind(*arguments)
