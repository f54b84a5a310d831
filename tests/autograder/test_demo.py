"""The demo's class: everybody gets exactly what their answers earn."""

import csv
import json
from pathlib import Path

import nbformat
import pytest
from markupsafe import escape

from autograder.authoring.answers import load
from autograder.authoring.chapters import find_chapters
from autograder.doors import demo
from autograder.pages.feedback import write_feedback
from autograder.pages.report import collect, write_scores

ROOT = Path(__file__).resolve().parents[2]
WITH_RELEASE = [chapter for chapter in find_chapters(ROOT) if chapter.release.is_file()]


@pytest.fixture(scope="module", params=["toy", *WITH_RELEASE], ids=lambda chapter: getattr(chapter, "id", chapter))
def done(request, toy, graded_class):
    """(chapter of the demo's folder, its source chapter, gradebook, flags by student) after the whole demo."""
    source = toy if request.param == "toy" else request.param
    made = graded_class(source)
    return made.chapter, source, made.book, {student: one.flags for student, one in made.graded.items()}


def points(chapter, book) -> dict[str, dict[str, float]]:
    table: dict[str, dict[str, float]] = {}
    for student, exercise, score, _ in book.scores(chapter):
        table.setdefault(student, {})[exercise] = score
    return table


def given(chapter, student) -> dict[str, str]:
    """The label of the answer that a student hands in, by exercise that a machine grades."""
    answers = load(chapter.answers)
    labels = {}
    for number, exercise in enumerate(chapter.exercises):
        if not exercise.by_hand:
            answer = demo.choice(exercise, answers, student, number, demo.mixed(answers), demo.needed(chapter))
            labels[exercise.id] = getattr(answer, "label", answer or "the solution")
    return labels


def test_perfect_is_full_and_blank_and_broken_are_zero(done):
    chapter, _, book, flags = done
    scores = points(chapter, book)
    graded = {e.id: e.points for e in chapter.exercises if not e.by_hand}
    assert flags[demo.PERFECT] == flags[demo.BLANK] == []
    assert {id: scores[demo.PERFECT][id] for id in graded} == graded
    assert set(scores[demo.BLANK].values()) == set(scores[demo.BROKEN].values()) == {0.0}


def test_everybody_gets_what_the_check_gives_for_the_same_answer(done, checked):
    """Mixed students, and the cheat: emptied tests and raised points change nothing."""
    chapter, source, book, _ = done
    worth = {result.exercise: result.points for result in checked(source)}
    scores, full = points(chapter, book), {e.id: e.points for e in chapter.exercises}
    for student in (demo.CHEAT, *demo.mixed(load(chapter.answers))):
        earned = {id: (worth[id] | {demo.LEFT_OUT: 0})[label] for id, label in given(chapter, student).items()}
        wrong = {id for id in earned if earned[id] < full[id]}
        alone = {id for id, others in demo.leans_on(source).items() if not others & wrong}
        assert {id: scores[student][id] for id in alone} == {id: earned[id] for id in alone}, student
        assert {id: scores[student][id] for id in earned if scores[student][id] > earned[id]} == {}, student


def test_every_wrong_answer_is_handed_in_by_somebody(done):
    chapter, *_ = done
    answers = load(chapter.answers)
    handed_in = {(id, label) for student in (demo.CHEAT, *demo.mixed(answers)) for id, label in given(chapter, student).items()}
    assert {(a.exercise, a.label) for a in answers if not a.right} <= handed_in


def test_the_scores_are_written(done, tmp_path):
    chapter, _, book, _ = done
    write_scores(collect([chapter], book.db_url), tmp_path / "scores.csv")
    table = list(csv.reader((tmp_path / "scores.csv").open()))
    class_size = 4 + len(demo.mixed(load(chapter.answers)))
    assert table[0] == ["student", "chapter", "exercise", "score", "max"]
    assert len(table) == 1 + class_size * len(chapter.exercises)


def test_written_answers_are_read_by_hand_once(done):
    chapter, _, book, _ = done
    by_hand = sum(exercise.by_hand for exercise in chapter.exercises)
    handed_in = 2 + len(demo.mixed(load(chapter.answers)))  # not the blank and the broken one
    assert [demo.grade_by_hand([chapter], book) for _ in range(2)] == [by_hand * handed_in, 0]


def test_everybody_has_a_page_without_a_hidden_line(done):
    from autograder.authoring.release import secrets

    chapter, _, book, _ = done
    answers = load(chapter.answers)
    pages = {path.parts[-3]: path.read_text() for path in write_feedback(chapter, book.db_url)}
    assert len(pages) == 4 + len(demo.mixed(answers))
    hidden = [line for line, what in secrets(chapter).items() if what.startswith(("hidden", "mark"))]
    for student, page in pages.items():
        handed_in = (chapter.root / "submitted" / student / chapter.stem / f"{chapter.stem}.ipynb").read_text(errors="replace")
        assert [line for line in hidden if escape(line) in page and json.dumps(line)[1:-1] not in handed_in] == []


def test_an_older_demo_is_replaced(toy, tmp_path):
    (tmp_path / "demo" / "submitted" / "old").mkdir(parents=True)
    demo.prepare(toy.root, tmp_path / "demo")
    assert not (tmp_path / "demo" / "submitted" / "old").exists()


def test_a_file_of_the_class_is_broken(toy, tmp_path):
    (chapter,) = demo.prepare(toy.root, tmp_path / "demo")
    with pytest.raises(nbformat.reader.NotJSONError):
        nbformat.read(tmp_path / "demo" / "submitted" / demo.BROKEN / chapter.stem / f"{chapter.stem}.ipynb", as_version=4)


def test_the_class_hands_in_every_wrong_answer_and_later_chapters_have_no_blank(tmp_path):
    chapters = demo.prepare(ROOT, tmp_path / "demo")
    assert 12 <= len(list((tmp_path / "demo" / "submitted").iterdir())) <= 4 + len(demo.MIXED)
    for chapter in chapters[1:]:
        answers, needed = load(chapter.answers), demo.needed(chapter)
        mixed = demo.mixed(answers, first=False)
        for student in (demo.BLANK, demo.BROKEN):
            assert student in mixed
            nbformat.read(tmp_path / "demo" / "submitted" / student / chapter.stem / f"{chapter.stem}.ipynb", as_version=4)
        handed_in = {
            (exercise.id, answer.label)
            for student in (demo.CHEAT, *mixed)
            for number, exercise in enumerate(chapter.exercises)
            if not exercise.by_hand and hasattr(answer := demo.choice(exercise, answers, student, number, mixed, needed), "label")
        }
        assert {(a.exercise, a.label) for a in answers if not a.right} <= handed_in
