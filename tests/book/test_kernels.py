"""The kernels' page says what the records say, and the records are those of one run."""

import copy
import statistics

import pytest

from book import kernels
from book.build import ROOT
from experiments.train_gpt import GPT2

RECORDS = kernels.records(ROOT)
ATTENTION = RECORDS["attention"]


def test_the_figures_of_the_text_are_those_of_the_record():
    made = copy.deepcopy(RECORDS)
    forms = made["attention"]["results"][0]["forms"]
    forms["ours"] |= {"forward_tflops": 450.0, "both_tflops": 400.0}
    forms["flash"] |= {"forward_tflops": 300.0, "both_tflops": 320.0}
    forms["cudnn"] |= {"forward_tflops": 600.0, "both_tflops": 500.0}
    page = kernels.page(made)
    assert "450 TFLOP/s forward and 400 forward and backward" in page
    assert "**1.50 and 1.25 times** torch's FlashAttention" in page and "0.75 and 0.80 times cuDNN's kernel" in page
    assert "450 / 400 | 300 / 320 | 600 / 500 |" in page


@pytest.mark.parametrize("result", ATTENTION["results"], ids=kernels.shape_of)
def test_recorded_speeds_follow_from_recorded_times(result):
    B, H, T, d_head = (result[name] for name in ("B", "H", "T", "d_head"))
    flops = 4 * B * H * T * T * d_head / (2 if result["causal"] else 1)
    for form in result["forms"].values():
        assert form["forward_tflops"] == pytest.approx(flops / form["forward"]["median"] / 1e9, abs=0.06)
        assert form["both_tflops"] == pytest.approx(3.5 * flops / form["both"]["median"] / 1e9, abs=0.06)


@pytest.mark.parametrize("result", RECORDS["memory_bound"]["results"], ids=lambda one: f"{one['kernel']} {one['shape']}")
def test_recorded_shares_follow_from_recorded_times(result):
    copied = RECORDS["memory_bound"]["ceilings"]["bytes_per_s"]
    for form in result["forms"].values():
        for direction, share in form["share_of_copy"].items():
            assert share == pytest.approx(result["bytes"][direction] / form[direction]["median"] * 1e3 / copied, abs=1e-3)


TRAINED = ("training", "speculative")  # on another card, which the page names
ELSEWHERE = (*TRAINED, "exactness")  # which the kernels' guide names


def test_all_records_are_of_one_set_of_versions_and_those_that_are_compared_of_one_card():
    heads = {name: (record["card"], record["versions"]) for name, record in RECORDS.items()}
    assert len({str(heads[name]) for name in heads if name not in ELSEWHERE}) == 1
    assert len({str(heads[name]) for name in TRAINED}) == 1
    assert len({str(versions) for _, versions in heads.values()}) == 1
    days = sorted(record["when"] for record in RECORDS.values())
    assert f"measured from {days[0]} to {days[-1]}" in kernels.page(RECORDS)
    assert f"on one\n{RECORDS['training']['card']}: **" in kernels.page(RECORDS)


def test_recorded_speeds_of_training_follow_from_recorded_times():
    training = RECORDS["training"]
    jobs = [(training["windows"], 1, form) for form in [*training["forms"].values(), *training["tried"]]]
    jobs += [(training["several"]["windows"], int(n), form) for n, form in training["several"]["gpus"].items()]
    for windows, gpus, form in jobs:
        speed = windows * training["T"] / form["step"]["median"] * 1e3
        assert form["tokens_per_s"] == pytest.approx(speed, rel=1e-5)
        share = speed * training["flop_per_token"] / gpus / training["peak_flop_per_s"]
        assert form["share_of_peak"] == pytest.approx(share, abs=1e-4)
    speeds = [form["tokens_per_s"] for form in training["several"]["gpus"].values()]
    assert training["several"]["times_one"] == pytest.approx(speeds[1] / speeds[0], abs=1e-3)


def test_the_operations_of_a_token_are_counted_from_the_shape():
    model, training = GPT2, RECORDS["training"]
    layer = 12 * model.d_model**2 + 13 * model.d_model  # four and eight d², biases, two norms
    parameters = 50_257 * model.d_model + model.n_layers * layer + 2 * model.d_model
    assert training["parameters"] == parameters
    assert training["flop_per_token"] == 6 * parameters + 12 * model.n_layers * model.d_model * training["T"]


def test_each_form_of_training_is_the_fastest_that_was_tried():
    training = RECORDS["training"]
    for name, form in training["forms"].items():
        assert form["tokens_per_s"] == max(one["tokens_per_s"] for one in training["tried"] if one["form"] == name)


def test_recorded_tokens_a_pass_follow_from_the_guesses_kept():
    """Each pass gives one token of the target's own and the guesses that it kept, but for the last passes of a prompt."""
    record = RECORDS["speculative"]
    for one in record["results"]:
        kept = (one["kept"] or 0) * one["guesses"]
        assert one["tokens_per_pass"] == pytest.approx(1 + kept, rel=0.02)
        assert one["tokens_per_s"] == pytest.approx(record["new"] / one["seconds"]["median"], rel=1e-2)


def test_recorded_tokens_a_second_follow_from_recorded_times():
    for result in RECORDS["decoding"]["results"]:
        for form in result["forms"].values():
            speed = result["B"] * result["new"] / form["seconds"]["median"]
            assert form["tokens_per_s"] == pytest.approx(speed, abs=0.6, rel=1e-3)
            assert form["share_of_bound"] == pytest.approx(speed / result["bound_tokens_per_s"], abs=1e-3)


def test_the_guides_tables_of_decoding_are_the_records():
    guide = (ROOT / "course" / "kernels" / "README.md").read_text()
    for one in RECORDS["decoding"]["results"]:
        ours, plain, peer = (one["forms"][name] for name in ("ours", "plain", "hugging_face"))
        speeds = f"{plain['tokens_per_s']:,} | {peer['tokens_per_s']:,}"
        share = f"{100 * ours['share_of_bound']:.0f} %"
        assert f"| {one['B']} | {ours['tokens_per_s']:,} | {one['bound_tokens_per_s']:,} | {share} | {speeds} |" in guide
    for one in RECORDS["speculative"]["results"]:
        form = {"fast": "fast", "plain": "plain, two prompts"}[one["form"]]
        kept = "1" if one["kept"] is None else f"{100 * one['kept']:.0f} % | {one['tokens_per_pass']:.2f}"
        head = f"| {form} | {one['temperature']:g} | {one['guesses']} | {'| ' if one['kept'] is None else ''}{kept} |"
        assert f"{head} {one['tokens_per_s']:,.0f} | {round(one['speed_up'], 2):g} |" in guide


def test_the_plain_form_needs_memory_with_the_square_of_the_length_and_the_kernel_with_the_length():
    same = {
        one["T"]: {name: form["peak_bytes"] for name, form in one["forms"].items()}
        for one in ATTENTION["results"]
        if (one["B"], one["d_head"], one["causal"]) == (2, 128, True)
    }
    assert same[8192]["plain"] / same[2048]["plain"] == pytest.approx(16, rel=0.1)
    assert same[8192]["ours"] / same[2048]["ours"] == pytest.approx(4, rel=0.1)


def test_figures_are_the_same_bytes_each_time_and_no_kernel_is_above_its_roof():
    assert kernels.figures(RECORDS) == kernels.figures(RECORDS)
    ceilings = ATTENTION["ceilings"]
    for name, intensity, speed in kernels.points_of_roofline(RECORDS):
        assert speed <= min(intensity * ceilings["bytes_per_s"], ceilings["flop_per_s"]) / 1e12, name


def test_the_guides_errors_are_the_records():
    guide, record = (ROOT / "course" / "kernels" / "README.md").read_text(), RECORDS["exactness"]
    for size in {row["scores"] for row in record["attention"]}:
        rows = [row for row in record["attention"] if row["scores"] == size]
        ours, flash = (statistics.mean(row[name][0] for row in rows) for name in ("ours", "flash"))
        assert f"| {size:,} | {ours:.4f} | {flash:.4f} |" in guide
    before, now = (record["cost"][name][0]["ours"] for name in ("before", "now"))
    speeds = [f"{one['forward_tflops']:.0f} / {one['both_tflops']:.0f}" for one in (before, now)]
    assert f"{speeds[0]} TFLOP/s forward / forward and backward before, {speeds[1]} now" in guide and "one H200" in guide


def test_the_loss_in_float16_learns_every_row_of_the_head():
    """Where the plain form, which stores (p − y)/n, leaves rows of words that are no target without a gradient."""
    for row in RECORDS["exactness"]["loss"]:
        assert row["ours_zero_rows"] == 0.0
        scaled = row["dtype"] == "torch.bfloat16" or row["scale"] > 1
        assert row["ours"][2] < (0.004 if scaled else 0.05) and row["ours"][0] < 0.01 and row["ours"][1] < 0.01
        assert row["dtype"] == "torch.bfloat16" or row["torch"][2] is None or row["torch"][2] > 0.5
