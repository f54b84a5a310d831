"""The course's own answers cannot be called while a student's are tested, whatever they are called by."""

import contextlib
import copy
import dataclasses
import functools
import importlib.util
import types

import pytest

from autograder.confined.guard import Guard, WithheldError
from course import attention, device, model, plots, position_rope, tokens
from course.attention import attention as reference

earlier = types.FunctionType(reference.__code__, reference.__globals__)


def load_again():
    spec = importlib.util.spec_from_file_location("mine", attention.__file__)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.attention


WAYS = {
    "by its name": lambda: attention.attention,
    "under another name": lambda: reference,
    "in a wrapper": lambda: lambda *a: reference(*a),
    "as a partial": lambda: functools.partial(reference),
    "as a copy": lambda: copy.deepcopy(reference),
    "as a function made of its code": lambda: earlier,
    "from the file, loaded again": load_again,
    "in a class": lambda: staticmethod(reference).__func__,
    "by its helper": lambda: attention.attention_weights,
    "wrapped with its looks": lambda: functools.wraps(reference)(lambda *a: reference(*a)),
}


@pytest.fixture
def guard():
    guard = Guard()
    yield guard
    guard.lift()


@pytest.fixture
def case():
    import torch

    return torch.eye(2), torch.eye(2), torch.eye(2)


@pytest.mark.parametrize("way", WAYS)
def test_the_reference_is_withheld_and_given_back(guard, case, way):
    f = WAYS[way]()
    arguments = case[:2] if "helper" in way else case
    before = f(*arguments)
    guard.set([])
    with pytest.raises(
        WithheldError, match="is the course's own answer and cannot be called while yours is tested: write it yourself"
    ):
        f(*arguments)
    assert guard.taken() and guard.taken() == []
    guard.lift()
    assert (f(*arguments) == before).all()


def test_what_is_allowed_works_with_all_that_it_calls(guard, case):
    guard.set(["course.attention.attention", "course.tokens.bpe_encode"])
    assert reference(*case).shape == (2, 2) and tokens.bpe_encode("abc", []) == [97, 98, 99]
    with pytest.raises(WithheldError):
        tokens.bpe_train("abc", 1)


def test_classes_and_functions_with_closures_are_withheld(guard):
    guard.set([])
    with pytest.raises(WithheldError, match=r"course\.position_rope\.PositionModel"):
        position_rope.PositionModel(8, d_model=8, n_heads=1, n_layers=1, scheme="none", T_max=4)


def test_dataclasses_of_others_stay(guard):
    Size = dataclasses.make_dataclass("Size", [f.name for f in dataclasses.fields(model.Config)])
    given = [0] * len(dataclasses.fields(Size))
    guard.set([])
    assert Size(*given) == Size(*given)
    with pytest.raises(WithheldError):
        model.Config(V=8)


def test_what_is_no_answer_stays(guard):
    guard.set([])
    assert device.best_device() is not None
    plots.use()


def test_set_twice_and_lifted_twice_is_as_it_was(guard, case):
    code = reference.__code__
    guard.set([])
    guard.set(["course.attention"])
    assert reference.__code__ is code
    guard.set([])
    guard.lift()
    guard.lift()
    assert reference.__code__ is code


def test_an_error_that_is_swallowed_is_told_nevertheless(guard, case):
    guard.set([])
    with contextlib.suppress(RuntimeError):
        reference(*case)
    assert guard.taken() == ["course.attention.attention"]
