"""Under policy `compat` scores are nbgrader's own: our side, run now on a sample, beside the record of benchmarks/compat.py."""

import json

import pytest

from autograder.authoring.chapters import find_chapters
from benchmarks import compat

RECORD = json.loads(compat.RECORD.read_text()) if compat.RECORD.exists() else {}
CHAPTERS = {chapter.stem: chapter for chapter in find_chapters(compat.ROOT)}
SAMPLE = 2  # submissions of each chapter: running hundreds takes minutes, and benchmarks/compat.py does it


pytestmark = pytest.mark.skipif(not RECORD, reason="no record yet: python -m benchmarks.compat")
each = pytest.mark.parametrize("stem", RECORD, ids=lambda stem: CHAPTERS[stem].id)


@each
def test_the_record_is_of_todays_chapter(stem):
    assert RECORD[stem]["sources"] == compat.sources(CHAPTERS[stem]), f"run: python -m benchmarks.compat {stem.split('_')[0]}"


def test_the_sentences_of_wrong_answers_are_no_source():
    answers = '@wrong("a", "ü"\n    "said", see="x")\ndef f(): pass\n\n\nwrong("b", [1], "said", see="y")\n'
    assert compat.without_sentences(answers) == b'@wrong("a", , see="x")\ndef f(): pass\n\n\nwrong("b", [1], , see="y")\n'


def test_the_record_has_hundreds_of_submissions():
    assert sum(len(chapter["scores"]) for chapter in RECORD.values()) >= 240


def test_the_classes_differ():
    """The record would say little if everybody had the same."""
    for chapter in RECORD.values():
        rows = {json.dumps(cells, sort_keys=True) for cells in chapter["scores"].values()}
        assert len(rows) > len(chapter["scores"]) / 3


@each
def test_scores_of_a_sample_are_nbgraders(stem):
    expected, size = RECORD[stem]["scores"], RECORD[stem]["size"]
    start = int(RECORD[stem]["sources"], 16) % (size - SAMPLE)  # another sample after each change
    students = sorted(expected)[start : start + SAMPLE]
    got = compat.ours(CHAPTERS[stem].id, size, students, jobs=1)
    assert sorted(got) == students and compat.differences(expected, got) == []


def test_a_difference_would_be_told():
    expected = {"ada": {"a": 1.0, "b": None, "c": 0.1 + 0.2}}
    assert compat.differences(expected, {"ada": {"a": 1.0, "b": None, "c": 0.3}}) == []
    assert len(compat.differences(expected, {"ada": {"a": 0.0, "b": 1.0, "c": None}})) == 3
