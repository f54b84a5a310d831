"""Who a hand-in is from: what a platform's export tells, the class list, and what was collected before.

A name is not a person: two can share it. An export tells a name and a number. Canvas's number is the person's in the
whole course; Moodle's is another one in each assignment, and only its grading worksheet says whose it is. So a student
is found by number, through the class list or the records of earlier collections; a name counts only where the class
list has it once, or where whole classes show that numbers change from one assignment to the next. Where there is a class
list and it does not tell, the teacher is asked (`Question`), with those who may be meant.
"""

import re
from collections import Counter, defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field
from difflib import SequenceMatcher
from functools import cached_property
from pathlib import Path

from autograder.errors import CourseError
from autograder.grading.gradebook import Book
from autograder.grading.merge import shown
from autograder.platforms.moodle import BLIND
from autograder.platforms.tables import bare, read_rows, safe, write_rows
from autograder.platforms.who import Who, folded

SHARED = 2  # people whose numbers must have changed before a name is followed to another assignment
OWN = "students.csv", "roster.csv"  # class lists of the course folder
REVIEW = "intake-review.csv"
NOBODY = "new"  # the answer to a question: somebody who is not on the class list
LIKE, CANDIDATES = 0.6, 5

COLUMNS = {
    "student": ("student", "student id"),
    "name": ("name", "full name", "fullname", "vollständiger name", "nom complet", "nombre completo"),
    "first": ("first name", "firstname", "given name", "vorname", "prénom", "nombre"),
    "last": ("last name", "lastname", "surname", "family name", "nachname", "nom", "apellido(s)"),
    "email": ("email", "email address", "e-mail", "e-mail address", "mail", "e-mail-adresse", "adresse de courriel"),
    "username": ("username", "user name", "anmeldename"),
    "login": ("sis login id", "login", "login id"),
    "key": ("id number", "idnumber", "id-nummer"),
    "sis": ("sis user id", "sis"),
    "moodle": ("identifier", "participant", "moodle"),  # "Participant 123" of a grading worksheet
    "canvas": ("lms user id", "canvas"),
    "groups": ("group", "groups"),
}
FILE = {"student": "id", "name": "name", "email": "email", "username": "username", "key": "idnumber"}
FILE |= {"canvas": "canvas", "sis": "sis", "login": "login", "moodle": "moodle"}
"""The columns of `students.csv`."""
PLATFORMS = "moodle", "canvas"
SAME = {"login": "username", "sis": "key"}  # names of one thing on two platforms


@dataclass
class Person:
    """A line of the class list, or several that are about the same person. `told` has what the list says as it says it."""

    student: str = ""  # the name of their folder and in the gradebook, if the list gives one
    names: set[str] = field(default_factory=set)
    numbers: set[tuple[str, str]] = field(default_factory=set)  # platform and number
    keys: set[tuple[str, str]] = field(default_factory=set)  # email, username and the like
    told: dict[str, str] = field(default_factory=dict)

    @property
    def label(self) -> str:
        """Name and email address, for people to read beside the id."""
        return " ".join(part for part in (self.told.get("name", ""), self.told.get("email", "")) if part and part != self.student)


@dataclass(frozen=True)
class Record:
    """An earlier collection: whose work was filed where."""

    student: str
    chapter: str
    who: Who


class Roster:
    """The class list.

    Args:
        people: of the class list and the gradebook.
        given: whether there is a list of the whole class, so that who is not on it is asked about.
        groups: names of groups, folded.
    """

    def __init__(self, people: Iterable[Person] = (), given: bool = False, groups: Iterable[str] = ()):
        self.given, self.groups = given, set(groups)
        self.people: list[Person] = []
        for person in people:
            self._add(person)
        self._known: dict[tuple[str, str], list[Person]] = defaultdict(list)
        for person in self.people:
            joined = {_joined(turn) for name in person.names for turn in _turns(name.split())}
            names = [("name", name) for name in person.names] + [("joined", name) for name in joined]
            for key in {("student", person.student), *person.keys, *person.numbers, *names}:
                self._known[key].append(person)

    @classmethod
    def read(cls, paths: Iterable[Path], people: Iterable[Person] = ()) -> "Roster":
        """The class lists in some CSV files, after people who are known already.

        Raises:
            CourseError: if a file is no class list.
        """
        paths, found, groups = list(paths), list(people), set()
        for path in paths:
            more, names = _rows(path)
            found += more
            groups |= names
        return cls(found, bool(paths), groups)

    def _add(self, new: Person) -> None:
        """Join a line to the person that it is about: the same student, email, username or number of the institution."""
        for person in self.people:
            if (new.student and new.student == person.student) or new.keys & person.keys:
                break
        else:
            alike = [person for person in self.people if new.names & person.names]
            if new.student or new.keys or len(alike) != 1:
                self.people.append(new)
                return
            (person,) = alike  # a worksheet that shows names and numbers only
        person.student = person.student or new.student
        person.names |= new.names
        person.numbers |= new.numbers
        person.keys |= new.keys
        person.told |= {what: text for what, text in new.told.items() if text and not person.told.get(what)}

    def numbered(self, who: Who) -> Person | None:
        """The one who has the platform's number, or whom a folder's name names."""
        if who.platform:
            found = self._known.get((who.platform, who.number), [])
        else:
            ways = [("student", who.name), *((what, folded(who.name)) for what in ("email", "username", "key"))]
            found = next((self._known[way] for way in ways if way in self._known), [])
        return found[0] if len(found) == 1 else None

    def answered(self, answer: str) -> Person | None:
        """The one whom a teacher means: by student id, else by email address, username or id number."""
        ways = [("student", answer), *((what, folded(answer)) for what in ("email", "username", "key", "name"))]
        found = next((self._known[way] for way in ways if way in self._known), [])
        found = found or [person for person in self.people if answer == f"{person.student} {person.label}".strip()]
        return found[0] if len(found) == 1 else None

    def named(self, name: str) -> list[Person]:
        """All who have a name; Canvas writes the last name first and leaves out all but letters and digits."""
        return self._known.get(("name", folded(name))) or self._known.get(("joined", _joined(name.split())), [])

    def candidates(self, who: Who) -> list[Person]:
        """Those whom a name may mean, the likeliest first."""
        wanted, words = _joined(who.name.split()), set(folded(who.name.replace("_", " ")).split())

        def likeness(person: Person) -> float:
            whole = [SequenceMatcher(None, wanted, _joined(turn)).ratio() for n in person.names for turn in _turns(n.split())]
            shared = [len(words & set(name.split())) / max(len(words), 1) for name in person.names]
            keys = [SequenceMatcher(None, wanted, _joined([key.partition("@")[0]])).ratio() for _, key in person.keys]
            return max([*whole, *(0.9 * share for share in shared), *(0.9 * key for key in keys)], default=0.0)

        likely = sorted(((likeness(person), i) for i, person in enumerate(self.people)), key=lambda one: (-one[0], one[1]))
        return [self.people[i] for value, i in likely[:CANDIDATES] if value >= LIKE]


def _joined(words: list[str]) -> str:
    return re.sub(r"[\W_]", "", folded("".join(words)))


def _turns(words: list[str]) -> Iterable[list[str]]:
    return (words[i:] + words[:i] for i in range(len(words)))


def _rows(path: Path) -> tuple[list[Person], set[str]]:
    """The people and the names of groups in a file."""
    rows = read_rows(path, "the class list")
    header = [re.sub(r"[\s_]+", " ", name).strip().casefold() for name in rows[0]] if rows else []
    columns = {what: [i for i, name in enumerate(header) if name in names] for what, names in COLUMNS.items()}
    given = header.index("id") if "id" in header else None
    if "sis login id" in header or "sis user id" in header or header[:2] == ["student", "id"]:  # Canvas's gradebook
        columns["name"], columns["student"] = columns["name"] + columns["student"], []
        columns["canvas"] += [] if given is None else [given]
    elif given is not None:  # students.csv; as `nbgrader db student import` takes it
        columns["student"] += [given]
    if not any(columns[what] for what in ("student", "name", "last", "email", "username", "moodle")):
        raise CourseError(
            f"the class list {path} has none of the columns id, name, email, username in its first line; "
            f"it has: {', '.join(map(shown, header)) or 'nothing'}"
        )
    found = [person for row in rows[1:] if (person := _person(row, columns)) is not None]
    groups = {folded(row[i]) for row in rows[1:] for i in columns["groups"] if i < len(row) and row[i].strip()}
    return found, groups


def _person(row: list[str], columns: dict[str, list[int]]) -> Person | None:
    cells = {what: [bare(row[i].strip()) for i in places if i < len(row) and row[i].strip()] for what, places in columns.items()}
    names = [*cells["name"], " ".join([*cells["first"], *cells["last"]])]
    if any(name.startswith("Points Possible") or name == "Student, Test" for name in names):  # of Canvas's gradebook
        return None
    made = person(
        (cells["student"] or [""])[0],
        names,
        [(platform, number) for platform in PLATFORMS for cell in cells[platform] for number in re.findall(r"\d+", cell)],
        **{what: (cells[what] or [""])[0] for what in ("email", "username", "key", "login", "sis")},
    )
    if made is not None:
        made.told |= {"first": " ".join(cells["first"]), "last": " ".join(cells["last"])}
    return made


def person(student: str, names: Iterable[str], numbers: Iterable[tuple[str, str]] = (), **keys: str) -> Person | None:
    """A person of the class list; None if nothing is known of them."""
    names, numbers = [name.strip() for name in names if name.strip()], set(numbers)
    told = {"name": _straight(names[0]) if names else "", **keys, "canvas": next((n for p, n in numbers if p == "canvas"), "")}
    found = {(SAME.get(what, what), folded(key)) for what, key in keys.items() if key}
    made = Person(student, {folded(name) for name in names}, numbers, found, told)
    return made if student or made.names or made.keys else None


def _straight(name: str) -> str:
    """A name with the first name first."""
    last, comma, first = name.partition(",")
    return f"{first.strip()} {last.strip()}" if comma else name


def class_list(root: Path, more: Iterable[Path], book: Book, *others: Book) -> Roster:
    """Who is in the class: the students whom the gradebook names, `students.csv` of the course folder, and other lists.

    Args:
        others: gradebooks of which all students are in the class, those too of whom only the id is known.

    Raises:
        CourseError: if a file is no class list, or the gradebook cannot be used.
    """
    people = [_student(*row) for row in book.people()]
    people += [_student(*row) for other in others for row in other.people(all=True)]
    return Roster.read([*(root / name for name in OWN if (root / name).is_file()), *more], people)


def _student(id: str, first: str, last: str, email: str, lms: str) -> Person:
    made = person(id, [f"{first} {last}"], [("canvas", lms)] if lms else [], email=email)
    made.told |= {"first": first, "last": last}
    return made


def write_list(roster: Roster, path: Path) -> list[tuple[str, str]]:
    """Write `students.csv`: everybody with an id. Who has none is called by username, id number, email address or name.

    Returns:
        (id, name) of each.
    """
    taken, rows = {person.student.casefold() for person in roster.people if person.student}, []
    for person in roster.people:
        told = person.told
        if not person.student:
            ways = ("username", "login", "key", "sis", "email", "name", "canvas")
            name = next((told[way] for way in ways if told.get(way)), "") or next(iter(person.names), "student")
            name = re.sub(r'[\\/:*?"<>|\x00-\x1f]', "_", name).strip(" .")[:100] or "student"
            id, count = name, 1
            while id.casefold() in taken:
                count += 1
                id = f"{name}-{count}"
            taken.add(id.casefold())
            person.student = id
        cells = {**told, "student": person.student, **_numbers(person)}
        rows.append([safe(cells.get(what, "")) for what in FILE])
    write_rows(path, [list(FILE.values()), *rows])
    return [(person.student, person.told.get("name", "")) for person in roster.people]


def _numbers(person: Person) -> dict[str, str]:
    return {platform: " ".join(sorted(n for p, n in person.numbers if p == platform)) for platform in PLATFORMS}


# ---------------------------------------------------------------- questions to the teacher


@dataclass(frozen=True)
class Question:
    """A hand-in of somebody whom the class list does not tell for sure.

    Attributes:
        assignment: where the number is another one in each assignment, the one that it is of; else empty.
        filed: the student as whom the work is filed until there is an answer.
        candidates: ids of the class list, or names where it has no id, the likeliest first.
    """

    who: Who
    assignment: str
    filed: str = ""
    candidates: tuple[str, ...] = ()

    @property
    def key(self) -> tuple[str, ...]:
        return (*self.who.key, self.assignment)


ASKED = "answer", "name", "number", "platform", "assignment", "filed as", "candidates"


def read_answers(root: Path) -> dict[tuple[str, ...], str]:
    """The teacher's answers in `intake-review.csv`, by the question's key; an empty one is none.

    Raises:
        CourseError: if the file cannot be read or has other columns.
    """
    return {question.key: answer for question, answer in _review(root) if answer}


def _review(root: Path) -> list[tuple[Question, str]]:
    path = root / REVIEW
    if not path.is_file():
        return []
    rows = read_rows(path, "the file of answers")
    header = [name.strip().casefold() for name in rows[0]] if rows else []
    if set(ASKED[:5]) - set(header):
        raise CourseError(f"{path}: its first line has to be {', '.join(ASKED)}; `autograder intake --review` writes it anew")
    found = []
    for row in rows[1:]:
        cell = {name: bare(row[i].strip()) if i < len(row) else "" for i, name in enumerate(header)}
        who = Who(cell["platform"].removeprefix("files"), cell["name"], cell["number"])
        candidates = tuple(filter(None, cell.get("candidates", "").split("; ")))
        found.append((Question(who, cell["assignment"], cell.get("filed as", ""), candidates), cell["answer"]))
    return found


def write_review(root: Path, questions: Iterable[Question], roster: Roster, chapters: Iterable[str]) -> Path | None:
    """Write the open questions into `intake-review.csv`, below those that were answered; the column `answer` is the teacher's.

    Args:
        chapters: those that were collected now; open questions of others stay.
    """
    path, chapters = root / REVIEW, set(chapters)
    kept = {
        question.key: (question, answer) for question, answer in _review(root) if answer or question.assignment not in chapters
    }
    for question in questions:
        kept.setdefault(question.key, (question, ""))
    if not kept:
        path.unlink(missing_ok=True)
        return None
    label = {person.student: person.label for person in roster.people if person.student}
    rows = [
        [
            *map(safe, (answer, question.who.name, question.who.number)),
            question.who.platform or "files",
            question.assignment,
            safe(question.filed),
            safe("; ".join(" ".join(filter(None, (id, label.get(id, "")))) for id in question.candidates)),
        ]
        for question, answer in sorted(kept.values(), key=lambda one: (bool(one[1]), one[0].assignment, one[0].who.name))
    ]
    write_rows(path, [ASKED, *rows])
    return path


def open_questions(root: Path) -> list[Question]:
    """The questions without an answer."""
    return [question for question, answer in _review(root) if not answer]


# ---------------------------------------------------------------- from an export's names to students


def identify(
    works: dict[Who, set[str]],
    roster: Roster,
    records: list[Record],
    taken: Iterable[str],
    folder_name,
    answers: dict[tuple[str, ...], str] | None = None,
) -> dict[Who, tuple[str, list[str], list[Question]]]:
    """The student of each hand-in of an export, a sentence where there is a doubt, and what the teacher is to be asked.

    Args:
        works: the assignments that each handed in for.
        records: of what was collected before.
        taken: names that students have already.
        folder_name: makes a name fit for a folder.
        answers: what the teacher answered to earlier questions.

    Raises:
        CourseError: if an answer names nobody of the class list.
    """
    return _Identification(works, roster, records, taken, folder_name, answers or {}).all()


class _Identification:
    def __init__(self, works, roster: Roster, records: list[Record], taken, folder_name, answers: dict):
        self.works, self.roster, self.records, self.folder_name = works, roster, records, folder_name
        self.answers = answers
        self.taken = {name.casefold() for name in taken}
        self.filed: dict[tuple, list[Record]] = defaultdict(list)  # by the person's key
        self.numbers: dict[tuple, dict[str, set[str]]] = defaultdict(lambda: defaultdict(set))  # assignments, by name and number
        for record in records:
            self.filed[record.who.key].append(record)
            self.numbers[record.who.called][record.who.number].add(record.chapter)
        for who, stems in works.items():
            self.numbers[who.called][who.number] |= stems
        self.students = {}  # of people of the class list, by their place in it, as they were filed before
        for record in records:
            if (found := self._listed(record.who)) is not None:
                self.students.setdefault(id(found), record.student)

    def all(self) -> dict[Who, tuple[str, list[str], list[Question]]]:
        found = {}
        for who in self.works:
            found[who] = self._known(who)
        for who in self.works:
            if found[who] is None:
                found[who] = self._new(who)
        return {who: (*named, self._asked(who, named[0])) for who, named in found.items()}

    def _known(self, who: Who) -> tuple[str, list[str]] | None:
        if (answered := self._answered(who)) is not None:
            return answered, []
        listed, before = self._listed(who), self._before(who)
        if listed is not None and listed.student:
            return self.folder_name(listed.student), []
        if before is not None:
            return before, []
        if listed is not None:
            return self._student(listed, who), []
        if not who.platform:
            return self.folder_name(who.name), []
        if not self.roster.given and (student := self._followed(who)) is not None:
            return student, [f"taken for {shown(student)} of another assignment by the name alone; a class list tells for sure"]
        return None

    def _student(self, listed: Person, who: Who) -> str:
        if id(listed) not in self.students:
            self.students[id(listed)] = self._unused(who, self._title(listed, who))
        return self.students[id(listed)]

    def _questions(self, who: Who) -> list[Question]:
        """One for each assignment, where numbers are those of an assignment."""
        return [Question(who, stem) for stem in sorted(self.works[who])] if who.platform == "moodle" else [Question(who, "")]

    def _answered(self, who: Who) -> str | None:
        """The student whom the teacher named."""
        for question in self._questions(who):
            answer = self.answers.get(question.key, "")
            if answer and answer != NOBODY:
                meant = self.roster.answered(answer)
                if meant is None:
                    raise CourseError(
                        f"{REVIEW}: the answer {shown(answer)!r} for {shown(who.name)} is nobody's id on the class list; "
                        f"write an id of {OWN[0]}, or {NOBODY!r} for somebody who is not on it"
                    )
                return self.folder_name(meant.student) if meant.student else self._student(meant, who)
        return None

    def _asked(self, who: Who, filed: str) -> list[Question]:
        """What the teacher is to be asked about somebody: nothing without a class list, or if it tells."""
        known = {self.folder_name(person.student) for person in self.roster.people if person.student} | set(
            self.students.values()
        )
        if not self.roster.given or filed in known or _nameless(who) or folded(who.name.replace("_", " ")) in self.roster.groups:
            return []
        named = self.roster.named(who.name)
        likely = named or self.roster.candidates(who)
        ids = tuple(person.student or person.told.get("name") or next(iter(person.names), "") for person in likely)
        return [
            Question(who, question.assignment, filed, ids)
            for question in self._questions(who)
            if question.key not in self.answers
        ]

    def _listed(self, who: Who) -> Person | None:
        """The person of the class list; by name only if nobody else can be meant."""
        if (found := self.roster.numbered(who)) is not None or not who.platform:
            return found
        named = self.roster.named(who.name)
        if len(named) != 1 or self._shared(who):
            return None
        if who.platform == "canvas" and any(platform == "canvas" for platform, _ in named[0].numbers):
            return None  # somebody else with this name: Canvas's number is the person's
        return named[0]

    def _shared(self, who: Who) -> bool:
        """Whether two with this name handed in for one assignment, here or before."""
        numbers = self.numbers[who.called]
        return any(stems & numbers[who.number] for number, stems in list(numbers.items()) if number != who.number)

    def _before(self, who: Who) -> str | None:
        """Where the same was filed by an earlier collection: in the same assignment, else in another."""
        same = sorted(self.filed[who.key], key=lambda record: record.chapter not in self.works[who])
        return same[0].student if same else None

    def _followed(self, who: Who) -> str | None:
        """The student of this name in other assignments, where numbers are known to change between assignments."""
        if who.platform != "moodle" or not who.number or not self._numbers_change:
            return None
        stems = Counter(stem for stems in self.numbers[who.called].values() for stem in stems)
        if max(stems.values()) > 1:  # two of this name in one assignment
            return None
        students = {r.student for r in self.records if r.who.called == who.called}
        return students.pop() if len(students) == 1 else None

    @cached_property
    def _numbers_change(self) -> bool:
        """Whether the same people have other numbers in other assignments, and nobody kept one."""
        several = [numbers for (platform, _), numbers in self.numbers.items() if platform == "moodle" and "" not in numbers]
        kept = any(len(stems) > 1 for numbers in several for stems in numbers.values())
        return not kept and sum(len(set().union(*numbers.values())) > 1 for numbers in several) >= SHARED

    def _new(self, who: Who) -> tuple[str, list[str]]:
        title = self.folder_name(who.name)
        if _nameless(who) and who.platform == "moodle" and not who.number:
            return self._unused(who, title), ["Moodle files all who are in no group under one name; part them by hand"]
        numbered = self.folder_name(f"{who.name}-{who.number}") if who.number else title
        if who.platform == "canvas" or folded(who.name) in BLIND:
            told = self._renumbered(who)
            return self._unused(who, numbered), told
        several = len(self.numbers[who.called]) > 1
        if not several and title.casefold() not in self.taken:
            return self._unused(who, title), []
        doubt = f"several people are called {shown(who.name)}" if several else f"{shown(title)} is another student"
        told = f"{doubt}; this one is number {who.number or 'unknown'} of the platform; a class list tells people apart"
        return self._unused(who, numbered), [told]

    def _renumbered(self, who: Who) -> list[str]:
        """A group of Canvas's is numbered by one of its members, not always the same."""
        others = {r.student for r in self.records if r.who.called == who.called and r.chapter in self.works[who]}
        if who.platform != "canvas" or _nameless(who) or "_" not in who.name or not others:
            return []
        return [f"may be {shown(sorted(others)[0])}, if this is a group: Canvas numbers a group by one of its members"]

    def _title(self, listed: Person, who: Who) -> str:
        """A name for the folder of somebody whom the class list names without saying which folder is theirs."""
        alike = [person for person in self.roster.people if person.names & listed.names]
        keys = dict(sorted(listed.keys))
        key = keys.get("username") or keys.get("email") or keys.get("key") or who.number
        return who.name if len(alike) == 1 and who.platform != "canvas" else key or who.name

    def _unused(self, who: Who, title: str) -> str:
        title = self.folder_name(title)
        name, count = title, 1
        while name.casefold() in self.taken:
            count += 1
            name = self.folder_name(f"{title}-{who.number or count}" if count == 2 else f"{title}-{count}")
        self.taken.add(name.casefold())
        return name


def _nameless(who: Who) -> bool:
    """Whether the platform hides who it is, or files many under one name."""
    if who.platform == "canvas":
        return who.name.casefold() == "anon"
    return who.platform == "moodle" and (folded(who.name) in BLIND or not who.number)
