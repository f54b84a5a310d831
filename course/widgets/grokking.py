"""Numbers that find their circle: stored runs by weight decay and seed, to scrub through training."""

import base64

import torch
import traitlets

from course import data
from course.grokking import curves
from course.widgets import Widget, esm

__all__ = ["DECAYS", "SEEDS", "Grokking"]

DECAYS = ("0", "0.3", "0.5", "1", "2", "4")
SEEDS = (0, 1, 2)
EVERY = 3  # of the recorded looks, which are kept


class Grokking(Widget):
    """The curves of one run, and its number vectors in the plane of the frequency that is strongest at the end.

    Args:
        decay: weight decay, one of `DECAYS`, as text.
        seed: one of `SEEDS`.
        frame: number of the moment, from 0 to 15.

    Raises:
        traitlets.TraitError: if a value is none of these.
    """

    stem = "grokking"
    _esm = esm(stem)
    decay = traitlets.Enum(DECAYS, "1").tag(sync=True)
    seed = traitlets.Enum(SEEDS, 0).tag(sync=True)
    frame = traitlets.Int(11, min=0, max=15).tag(sync=True)
    runs = traitlets.Dict().tag(sync=True)
    steps = traitlets.List(traitlets.Int()).tag(sync=True)
    frames = traitlets.List(traitlets.Int()).tag(sync=True)

    def __init__(self, **given):
        found, seen = data.record("grokking")["results"], curves()
        looks = [*range(0, len(found["steps"]) - 1, EVERY), len(found["steps"]) - 1]
        moments = [found["steps"].index(step) for step in found["frames"]]
        kept = {}
        for i, run in enumerate(found["runs"]):
            if run["seed"] not in SEEDS:
                continue
            shares = torch.stack([seen[name][i] for name in ("train accuracy", "test accuracy", "Fourier")])  # (3, looks)
            kept[f"{run['decay']:g}/{run['seed']}"] = {
                "curves": (100 * shares[:, looks]).round().int().tolist(),
                "now": shares[:, moments].double().round(decimals=2).tolist(),
                "grokked": run["t_test"],
                "key": run["keys"][0],
                "at": base64.b64encode(seen["circles"][i].to(torch.int8).numpy().tobytes()).decode(),
            }
        super().__init__(runs=kept, steps=[found["steps"][i] for i in looks], frames=found["frames"], **given)

    def describe(self) -> str:
        run, step = self.runs[f"{self.decay}/{self.seed}"], self.frames[self.frame]
        train, test, fourier = (values[self.frame] for values in run["now"])
        grokked = f"it groks at step {run['grokked']:,}" if run["grokked"] else f"it has not grokked by step {self.steps[-1]:,}"
        return (
            f"Weight decay {self.decay}, seed {self.seed}, step {step:,}: accuracy {train:.2f} on training pairs, {test:.2f} on test pairs, "
            f"Fourier measure {fourier:.2f}; {grokked}. The plane is that of frequency {run['key']}."
        )
