"""The kinds of value that both ends treat in a way of their own: plain ones, functions, generators of random numbers."""

import ctypes
import functools
import random
import types

import numpy as np
import torch

PLAIN = bool, int, float, complex, str, bytes, list, tuple, dict, set, frozenset
FUNCTIONS = (
    *(types.FunctionType, types.BuiltinFunctionType, types.MethodType, types.MethodWrapperType, types.WrapperDescriptorType),
    *(types.MethodDescriptorType, types.ClassMethodDescriptorType, functools.partial, np.ufunc, type(functools.lru_cache(len))),
)


def _torch_generator(state):
    generator = torch.Generator()
    generator.set_state(state)
    return generator


def _numpy_generator(state):
    bits = getattr(np.random, state["bit_generator"])()
    bits.state = state
    return np.random.Generator(bits)


def _numpy_state(state):
    old = np.random.RandomState()
    old.set_state(state)
    return old


def _python_random(state):
    new = random.Random()
    new.setstate(state)
    return new


RANDOM = {
    torch.Generator: (lambda x: x.get_state(), _torch_generator),
    np.random.Generator: (lambda x: x.bit_generator.state, _numpy_generator),
    np.random.RandomState: (lambda x: x.get_state(legacy=False), _numpy_state),
    random.Random: (lambda x: x.getstate(), _python_random),
}
"""Generators by their kind: how their state is read, and how one is made from it."""


GETTERS = torch.default_generator.get_state, functools.partial(np.random.get_state, legacy=False), random.getstate
SETTERS = torch.default_generator.set_state, np.random.set_state, random.setstate
"""How the states of the generators that everybody shares are read and set: torch's, numpy's and Python's."""


def randomness() -> tuple:
    """What tells whether one of these states has changed."""
    return torch.default_generator.get_state().numpy().tobytes(), _numpy_words(), random.getstate()


def _numpy_words() -> bytes:
    """The 624 words and the place of numpy's shared generator; its own getter takes a hundred times as long."""
    generator = np.random.get_bit_generator()
    return ctypes.string_at(generator.ctypes.state_address, 625 * 4) if type(generator) is np.random.MT19937 else b""
