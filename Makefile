# `make` lists what there is. Everything runs in .venv, which is made on first use.
PYTHON ?= python3
BIN := .venv/bin
READY := .venv/.ready
TOOLS := build/.tools
NOTEBOOKS ?= source
NBVAL := pytest --numprocesses 2 --dist loadfile --nbval --nbval-current-env --nbval-sanitize-with tests/nbval.cfg
OLD := ATEN_CPU_CAPABILITY=default MKL_CBWR=COMPATIBLE MKL_ENABLE_INSTRUCTIONS=SSE4_2 ONEDNN_MAX_CPU_ISA=SSE41
export OMP_NUM_THREADS := 1
export PATH := $(CURDIR)/$(BIN):$(PATH)

.DEFAULT_GOAL := help
.PHONY: help setup demo test arithmetics proofs lab book pdf epub lighthouse tools release grade check tables lock clean

help:  ## this list
	@grep -hE '^[a-z]+:.*##' $(MAKEFILE_LIST) | sed -E 's/^([a-z]+):.*## /\1\t/' | expand -t 12

setup: $(READY)  ## make .venv with everything pinned in requirements.lock

$(READY): requirements.lock pyproject.toml
	$(PYTHON) -c 'import sys; assert (3, 11) <= sys.version_info < (3, 14), "Python 3.11, 3.12 or 3.13 is needed; name it: make PYTHON=python3.12"'
	$(PYTHON) -m venv .venv
	$(BIN)/pip install --quiet --requirement requirements.lock
	$(BIN)/pip install --quiet --no-deps --editable .
	touch $@

$(TOOLS): tests/book/package-lock.json | $(READY)
	python -m book.tools
	mkdir -p build
	touch $@

demo: $(READY)  ## the main job: release the chapters, make a class of a dozen, grade it, write build/demo/
	autograder release --check
	autograder bundle
	autograder demo

test: $(READY) $(TOOLS)  ## all tests: code, chapters, receipts, release, book
	ruff check
	ruff format --check autograder benchmarks book conftest.py course experiments tests
	@ls /usr/lib/postgresql/*/bin/initdb > /dev/null 2>&1 || command -v initdb > /dev/null \
		|| { test `id -u` = 0 && command -v apt-get > /dev/null && apt-get install --yes --quiet postgresql; } \
		|| echo 'PostgreSQL is not installed and cannot be here (apt-get as root): its tests will be skipped'
	python -m book.proofs --install --check
	pytest --numprocesses 2 --dist loadfile --no-loadscope-reorder --ignore tests/book tests # see tests/conftest.py
	pytest --numprocesses 2 --dist loadfile tests/book # alone: a browser's event loop stays in its process
	$(NBVAL) source

arithmetics: $(READY)  ## the notebooks give their stored outputs with this processor's arithmetic and an old one's
	@status=0; $(NBVAL) $(NOTEBOOKS) || status=1; $(OLD) $(NBVAL) $(NOTEBOOKS) || status=1; exit $$status

proofs: $(READY)  ## check the proofs with Rocq, which apt-get installs where it is missing
	python -m book.proofs --install

lab: $(READY)  ## JupyterLab on the students' notebooks, with nbgrader's Validate button
	jupyter lab release

book: $(READY)  ## build/book/html; with SOLUTIONS=show, solutions too
	python -m book.build

pdf: $(READY) $(TOOLS)  ## build/book/mathematics-of-transformers.pdf, the whole book
	python -m book.pdf

epub: $(READY) $(TOOLS)  ## build/book/mathematics-of-transformers.epub, checked by epubcheck
	python -m book.epub

lighthouse: $(READY) $(TOOLS)  ## how fast and how accessible the pages are, judged by Lighthouse
	python -m book.build
	python -m benchmarks.lighthouse

tools: $(TOOLS)  ## install Chromium, epubcheck and axe-core where they are missing

release: $(READY)  ## release/ from source/
	autograder release

grade: $(READY)  ## submitted/ into gradebook.db, then feedback/ and build/report/
	autograder grade
	autograder feedback
	autograder report

check: $(READY)  ## do the tests accept every right and reject every wrong answer?
	autograder check

tables: $(READY)  ## write the chapters' tables of formulas from the registry
	python -m book.tables

lock: $(READY)  ## requirements.lock from what is installed now
	pip freeze --exclude-editable | sed -E 's/^(torch==[^+]*)\+.*/\1/; s/^([A-Za-z0-9_.-]+) @ .*/\1/; s/^triton==.*/& ; sys_platform == "linux"/' > requirements.lock

clean:  ## remove build/ and .venv
	rm -rf build .venv
