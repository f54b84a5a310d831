"""Who a hand-in is from: what a platform's export tells, the class list, and what was collected before.

A name is not a person: two can share it. An export tells a name and a number. Canvas's number is the person's in the
whole course; Moodle's is another one in each assignment, and only its grading worksheet says whose it is. So a student
is found by number, through the class list or the records of earlier collections; a name counts only where the class
list has it once, or where whole classes show that numbers change from one assignment to the next.
"""

import csv
import io
import re
from collections import Counter, defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

from autograder.errors import CourseError
from autograder.grading.gradebook import Book
from autograder.grading.merge import shown
from autograder.platforms.who import Who, folded

LARGEST = 20_000_000  # bytes of a class list
SHARED = 2  # people whose numbers must have changed before a name is followed to another assignment

COLUMNS = {
    "student": ("student", "student id"),
    "name": ("name", "full name", "fullname"),
    "first": ("first name", "firstname", "given name"),
    "last": ("last name", "lastname", "surname", "family name"),
    "email": ("email", "email address", "e-mail", "e-mail address", "mail"),
    "username": ("username", "user name", "login", "login id", "sis login id"),
    "key": ("id number", "idnumber", "sis user id"),
    "moodle": ("identifier", "participant", "moodle"),  # "Participant 123" of a grading worksheet
    "canvas": ("lms user id", "canvas"),
}
PLATFORMS = "moodle", "canvas"
BLIND = {"participant"}  # what Moodle calls everybody where names are hidden


@dataclass
class Person:
    """A line of the class list, or several that are about the same person."""

    student: str = ""  # the name of their folder and in the gradebook, if the list gives one
    names: set[str] = field(default_factory=set)
    numbers: set[tuple[str, str]] = field(default_factory=set)  # platform and number
    keys: set[tuple[str, str]] = field(default_factory=set)  # email, username and the like


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
    """

    def __init__(self, people: Iterable[Person] = ()):
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
        return cls([*people, *(person for path in paths for person in _rows(path))])

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

    def numbered(self, who: Who) -> Person | None:
        """The one who has the platform's number, or whom a folder's name names."""
        if who.platform:
            found = self._known.get((who.platform, who.number), [])
        else:
            ways = [("student", who.name), *((what, folded(who.name)) for what in ("email", "username", "key"))]
            found = next((self._known[way] for way in ways if way in self._known), [])
        return found[0] if len(found) == 1 else None

    def named(self, name: str) -> list[Person]:
        """All who have a name; Canvas writes the last name first and leaves out all but letters and digits."""
        return self._known.get(("name", folded(name))) or self._known.get(("joined", _joined(name.split())), [])


def _joined(words: list[str]) -> str:
    return re.sub(r"[\W_]", "", folded("".join(words)))


def _turns(words: list[str]) -> Iterable[list[str]]:
    return (words[i:] + words[:i] for i in range(len(words)))


def _rows(path: Path) -> list[Person]:
    try:
        raw = path.open("rb").read(LARGEST + 1)
    except OSError as error:
        raise CourseError(f"the class list {path} cannot be read ({error.strerror})") from None
    if len(raw) > LARGEST:
        raise CourseError(f"the class list {path} is larger than {LARGEST // 1_000_000} MB")
    encoding = "utf-16" if raw[:2] in (b"\xff\xfe", b"\xfe\xff") else "utf-8-sig"
    try:
        text = raw.decode(encoding)
    except UnicodeDecodeError:
        text = raw.decode("cp1252", "replace")
    first = text.partition("\n")[0]
    try:
        rows = list(csv.reader(io.StringIO(text, newline=""), delimiter=max(",;\t", key=first.count)))
    except csv.Error as error:
        raise CourseError(f"the class list {path} cannot be read ({error})") from None
    header = [re.sub(r"[\s_]+", " ", name).strip().casefold() for name in rows[0]] if rows else []
    columns = {what: [i for i, name in enumerate(header) if name in names] for what, names in COLUMNS.items()}
    given = header.index("id") if "id" in header else None
    if "sis login id" in header or "sis user id" in header:  # Canvas's gradebook: "Student" is a name
        columns["name"], columns["student"] = columns["name"] + columns["student"], []
        columns["canvas"] += [] if given is None else [given]
    elif given is not None:  # as `nbgrader db student import` takes it
        columns["student"] += [given]
    if not any(columns[what] for what in ("student", "name", "last", "email", "username", "moodle")):
        raise CourseError(
            f"the class list {path} has none of the columns student, name, email, username in its first line; "
            f"it has: {', '.join(map(shown, header)) or 'nothing'}"
        )
    return [person for row in rows[1:] if (person := _person(row, columns)) is not None]


def _person(row: list[str], columns: dict[str, list[int]]) -> Person | None:
    cells = {what: [row[i].strip() for i in places if i < len(row) and row[i].strip()] for what, places in columns.items()}
    name = " ".join([*cells["first"], *cells["last"]])
    return person(
        (cells["student"] or [""])[0],
        [*cells["name"], *filter(None, [name])],
        [(platform, number) for platform in PLATFORMS for cell in cells[platform] for number in re.findall(r"\d+", cell)],
        **{what: (cells[what] or [""])[0] for what in ("email", "username", "key")},
    )


def person(student: str, names: Iterable[str], numbers: Iterable[tuple[str, str]] = (), **keys: str) -> Person | None:
    """A person of the class list; None if nothing is known of them."""
    made = Person(
        student, {folded(n) for n in names if n.strip()}, set(numbers), {(what, folded(key)) for what, key in keys.items() if key}
    )
    return made if student or made.names or made.keys else None


def class_list(root: Path, more: Iterable[Path], book: Book) -> Roster:
    """Who is in the class: the students whom the gradebook names, `roster.csv` of the course folder, and other lists.

    Raises:
        CourseError: if a file is no class list, or the gradebook cannot be used.
    """
    own = root / "roster.csv"
    people = [
        person(id, [f"{first} {last}"], [("canvas", lms)] if lms else [], email=email)
        for id, first, last, email, lms in book.people()
    ]
    return Roster.read([*([own] if own.is_file() else []), *more], people)


# ---------------------------------------------------------------- from an export's names to students


def identify(
    works: dict[Who, set[str]], roster: Roster, records: list[Record], taken: Iterable[str], folder_name
) -> dict[Who, tuple[str, list[str]]]:
    """The student of each hand-in of an export, and a sentence where there is a doubt.

    Args:
        works: the assignments that each handed in for.
        records: of what was collected before.
        taken: names that students have already.
        folder_name: makes a name fit for a folder.
    """
    return _Identification(works, roster, records, taken, folder_name).all()


class _Identification:
    def __init__(self, works, roster: Roster, records: list[Record], taken, folder_name):
        self.works, self.roster, self.records, self.folder_name = works, roster, records, folder_name
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

    def all(self) -> dict[Who, tuple[str, list[str]]]:
        found = {}
        for who in self.works:
            found[who] = self._known(who)
        for who in self.works:
            if found[who] is None:
                found[who] = self._new(who)
        return found

    def _known(self, who: Who) -> tuple[str, list[str]] | None:
        listed, before = self._listed(who), self._before(who)
        if listed is not None and listed.student:
            return self.folder_name(listed.student), []
        if before is not None:
            return before, []
        if listed is not None:
            if id(listed) not in self.students:
                self.students[id(listed)] = self._unused(who, self._title(listed, who))
            return self.students[id(listed)], []
        if not who.platform:
            return self.folder_name(who.name), []
        if (student := self._followed(who)) is not None:
            return student, [f"taken for {shown(student)} of another assignment by the name alone; a class list tells for sure"]
        return None

    def _listed(self, who: Who) -> Person | None:
        """The person of the class list; by name only if nobody else can be meant."""
        if (found := self.roster.numbered(who)) is not None or not who.platform:
            return found
        named = self.roster.named(who.name)
        if len(named) != 1 or self._shared(who):
            return None
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
        numbered = self.folder_name(f"{who.name}-{who.number}") if who.number else title
        if who.platform == "canvas" or folded(who.name) in BLIND:
            return self._unused(who, numbered), []
        several = len(self.numbers[who.called]) > 1
        if not several and title.casefold() not in self.taken:
            return self._unused(who, title), []
        doubt = f"several people are called {shown(who.name)}" if several else f"{shown(title)} is another student"
        told = f"{doubt}; this one is number {who.number or 'unknown'} of the platform; a class list tells people apart"
        return self._unused(who, numbered), [told]

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
