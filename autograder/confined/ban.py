"""What a task forbids an answer, on the student's side: refused in the whole process while tests call the answer.

`course.checks.Refusing` watches torch's functions by a mode of Python, which holds in one thread and which code can leave.
Here the operators themselves are refused, where every way to them ends (names, aliases, `torch.ops`, `torch._C`, TorchScript,
threads, transforms): kernels that raise take the place of theirs in torch's dispatcher. Autograd is refused by
letting the dispatcher pass over its kernels: no operator is recorded, so that there is nothing to go back through, and what
was recorded before is taken for changed, as torch itself takes it after a change in place. Functions
of torch that are written in Python get code that raises, as `autograder.confined.guard` does it with those of the course.

What is left: a text that was copied, a program that torch wrote of a derivation before (a trace of `torch.func.grad`),
and code that takes this process to pieces (ctypes, the garbage collector's lists, counters of versions).
"""

import contextlib
import functools
import gc
import os
import re
import types
import warnings
from collections.abc import Iterator
from importlib.machinery import SourceFileLoader

import torch

from autograder.confined.guard import raising, refusals
from course.checks import not_allowed

_TORCH = os.path.dirname(torch.__file__) + os.sep
_KEYS = (
    *("CPU", "CompositeImplicitAutograd", "CompositeExplicitAutograd", "CompositeExplicitAutogradNonFunctional"),
    *("FuncTorchBatched", "FuncTorchBatchedDecomposition"),
)
_OPERATORS = {"autograd": r"(\w*_)?(backward|make_dual)(_\w*)?", "torch.optim": r"_fused_(adam|adamw|adagrad|sgd)_?"}
"""The operators that go with a word or a module."""
_DERIVING = r"grad|value_and_grad|grad_and_value|[vjh]+[vjh]p|vhp|jac\w+|hessian|linearize|(?!save_for_)(\w*_)?(backward|make_dual)(_\w*)?"
_DERIVES = r"autograd/.*|_functorch/(eager_transforms|apis)\.py|_tensor\.py|_(decomp|refs)/.*"
_NO_GRAPH = re.compile("does not require grad|not require gradients|not have a grad_fn|modified by an inplace operation")


def tame_scripts() -> None:
    """Take from torch, for good, what lets TorchScript run kernels, or derive and record, without the dispatcher."""
    torch._C._set_graph_executor_optimize(False)
    for name in ("__call__", "runAsync", "benchmark", "benchmark_individual_ops"):
        delattr(torch._C.StaticModule, name)
    for name in (
        *("_jit_to_static_module", "_fuse_to_static_module", "_jit_differentiate"),
        *("_set_graph_executor_optimize", "_get_graph_executor_optimize"),
    ):
        delattr(torch._C, name)


class Ban:
    """What is refused in this process now."""

    def __init__(self):
        self.names: tuple[str, ...] = ()
        self._library: torch.library.Library | None = None
        self._swapped: list[tuple[types.FunctionType, types.CodeType]] = []
        self._met: str | None = None
        self._graphs: list[torch.Tensor] = []  # what graphs of earlier cells go back through

    def set(self, names: tuple[str, ...]) -> None:
        """Refuse what these names stand for, as `course.checks.Exercise` takes them, and nothing else."""
        names = tuple(names)
        if names == self.names:
            return
        self.lift()
        self.names = names
        if not names:
            return
        self._library = torch.library.Library("aten", "IMPL")
        with warnings.catch_warnings(action="ignore"):  # torch tells of kernels that another one hides
            for name in names:
                if "." not in name or name in _OPERATORS:
                    self._refuse_operators(name, re.compile(_OPERATORS.get(name) or rf"(\w*_)?({name})(_\w*)?"))
            if "autograd" in names:
                self._record_nothing()
                self._graphs = _saved_in_graphs()
                _count_changes(self._graphs, 1)
        self._refuse_functions([function for name in names for function in _candidates(name)])
        self._refuse_functions(gc.get_objects())  # what was loaded or copied since
        load = self._load = SourceFileLoader.exec_module

        def loading(loader, module):
            load(loader, module)
            self._refuse_functions(gc.get_objects())

        SourceFileLoader.exec_module = loading
        refusals.append(self._refused_code)

    def lift(self) -> None:
        """Allow everything again."""
        if not self.names:
            return
        SourceFileLoader.exec_module = self._load
        refusals.remove(self._refused_code)
        while self._swapped:
            function, code = self._swapped.pop()
            function.__code__ = code
        self._library._destroy()
        _count_changes(self._graphs, -1)
        self._graphs = []
        self.names, self._met = (), None

    def met(self, error: BaseException | None = None) -> BaseException | None:
        """The error to tell for a call that ended in `error`: what was refused, in any thread, comes first."""
        told, self._met = self._met, None
        if told is None and "autograd" in self.names and isinstance(error, RuntimeError) and _NO_GRAPH.search(str(error)):
            told = not_allowed("autograd")
        if told is None or isinstance(error, PermissionError):  # it says where in the answer, too
            return error
        return PermissionError(told)

    # ------------------------------------------------------------ operators

    def _refuse_operators(self, what: str, pattern: re.Pattern) -> None:
        for name in operators():
            if pattern.fullmatch(name.partition(".")[0]):
                for key in _KEYS:
                    self._put(name, self._refusal(what, name.partition(".")[0]), key)

    def _record_nothing(self) -> None:
        for name in operators():
            self._put(name, torch.library.fallthrough_kernel, "Autograd")

    def _put(self, name: str, kernel, key: str) -> None:
        """Hide an operator's kernel by another one."""
        if torch._C._dispatch_has_kernel_for_dispatch_key(f"aten::{name}", key):
            self._library.impl(name, kernel, key)

    def _refusal(self, what: str, name: str):
        def refused(*args, **kwargs):
            raise self._error(what, name)()

        return refused

    # ------------------------------------------------------------ functions

    def _refuse_functions(self, things: list) -> None:
        for thing in things:
            if type(thing) is types.FunctionType and thing.__code__.co_filename.startswith(_TORCH):
                what = self._forbids(thing.__code__)
                if what is not None:
                    code = thing.__code__
                    thing.__code__ = raising(len(code.co_freevars), self._error(what, code.co_name))
                    self._swapped.append((thing, code))

    def _refused_code(self, code: types.CodeType) -> type[PermissionError] | None:
        what = self._forbids(code) if code.co_filename.startswith(_TORCH) and code.co_name != "<module>" else None
        return self._error(what, code.co_name) if what is not None else None

    def _forbids(self, code: types.CodeType) -> str | None:
        """Which of the names a function of torch falls under."""
        return next((name for name in self.names if _falls_under(name, code.co_filename, code.co_name)), None)

    def _error(self, what: str, name: str) -> type[PermissionError]:
        sentence = not_allowed(what, name)

        def __new__(cls, *_):  # Python gives it what it made, to make it once more
            self._met = sentence
            return PermissionError(sentence)

        return type("PermissionError", (PermissionError,), {"__new__": __new__})


def _saved_in_graphs() -> list[torch.Tensor]:
    """The tensors that the graphs of this process have saved for their way back."""
    kinds, nodes = {}, []
    for thing in gc.get_objects():
        kind = type(thing)
        if kind not in kinds:
            kinds[kind] = "tensor" if issubclass(kind, torch.Tensor) else "node" if _of_graphs(kind) else None
        if kinds[kind] is not None:
            nodes.append(torch.Tensor.grad_fn.__get__(thing) if kinds[kind] == "tensor" else thing)
    seen, saved = set(), []
    while nodes:
        node = nodes.pop()
        if node is None or node in seen:
            continue
        seen.add(node)
        nodes += [before for before, _ in node.next_functions]
        for name in dir(node):
            if name.startswith("_saved_"):
                with contextlib.suppress(RuntimeError):  # it has gone back already, or was changed in place
                    values = getattr(node, name)
                    values = values if isinstance(values, tuple | list) else [values]
                    saved += [value for value in values if isinstance(value, torch.Tensor)]
    return saved


def _of_graphs(kind: type) -> bool:
    return any("next_functions" in vars(base) for base in kind.__mro__)


def _count_changes(tensors: list[torch.Tensor], by: int) -> None:
    for tensor in tensors:
        torch._C._autograd._unsafe_set_version_counter((tensor,), (tensor._version + by,))


@functools.cache
def _falls_under(name: str, file: str, function: str) -> bool:
    inside = file.removeprefix(_TORCH).replace(os.sep, "/")
    if "." in name:
        path = name.partition(".")[2].replace(".", "/")
        return inside.startswith((f"{path}/", f"{path}.py"))
    if name == "autograd":
        return re.fullmatch(_DERIVES, inside) is not None and re.fullmatch(_DERIVING, function) is not None
    return re.fullmatch(rf"(\w*_)?({name})(_\w*)?", function) is not None


def _candidates(name: str) -> Iterator[types.FunctionType]:
    """The functions of `written_in_python` that may fall under a name; to ask `_falls_under` of all of them takes longer."""
    if "." in name:
        return (function for functions in written_in_python().values() for function in functions)
    pattern = re.compile(_DERIVING if name == "autograd" else rf"(\w*_)?({name})(_\w*)?")
    return (f for called, functions in written_in_python().items() if pattern.fullmatch(called) for f in functions)


@functools.cache
def written_in_python() -> dict[str, list[types.FunctionType]]:
    """The functions of torch that may have to be refused, by their names; to be called before the collector's lists are frozen."""
    found: dict[str, list[types.FunctionType]] = {}
    for thing in gc.get_objects():
        if type(thing) is types.FunctionType and thing.__code__.co_filename.startswith(_TORCH):
            found.setdefault(thing.__code__.co_name, []).append(thing)
    return found


@functools.cache
def operators() -> list[str]:
    """The names of torch's operators, with their overloads."""
    return [name.removeprefix("aten::") for name in torch._C._dispatch_get_all_op_names() if name.startswith("aten::")]
