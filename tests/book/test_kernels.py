"""The kernels' page says what the records say, and the records are those of one run."""

import copy

import pytest

from book import kernels
from book.build import ROOT

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


def test_all_records_are_of_one_card_and_one_set_of_versions():
    heads = [(record["card"], record["versions"], record["when"]) for record in RECORDS.values()]
    assert len(heads) == 4 and all(head == heads[0] for head in heads)


def test_recorded_tokens_a_second_follow_from_recorded_times():
    for result in RECORDS["decoding"]["results"]:
        for form in result["forms"].values():
            speed = result["B"] * result["new"] / form["seconds"]["median"]
            assert form["tokens_per_s"] == pytest.approx(speed, abs=0.6, rel=1e-3)
            assert form["share_of_bound"] == pytest.approx(speed / result["bound_tokens_per_s"], abs=1e-3)


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
