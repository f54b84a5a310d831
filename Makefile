# `make` lists what there is. Everything runs in .venv, which is made on first use.
PYTHON ?= python3
BIN := .venv/bin
READY := .venv/.ready
AUDIT := build/audit
KNOWN := 'import sys; assert (3, 11) <= sys.version_info < (3, 14), "Python 3.11, 3.12 or 3.13 is needed; name it: make PYTHON=python3.12"'
PINNED = $(shell grep ^torch== requirements.lock)
FOR_CPUS = $(shell sed -n 's/.*--index-url //p' README.md)
export OMP_NUM_THREADS := 1
export PATH := $(CURDIR)/$(BIN):$(PATH)

.DEFAULT_GOAL := help
.PHONY: help setup newest demo test arithmetics proofs answers lab book pdf epub dist lighthouse tools release grade check tables lock audit clean

help:  ## this list
	@grep -hE '^[a-z]+:.*##' $(MAKEFILE_LIST) | sed -E 's/^([a-z]+):.*## /\1\t/' | expand -t 12

setup: $(READY)  ## make .venv with everything pinned in requirements.lock, and bring the trained models (180 MB); TORCH=cpu takes torch's build for CPUs

$(READY): requirements.lock pyproject.toml
	$(PYTHON) -c $(KNOWN)
	$(PYTHON) -m venv .venv
	if [ "$(TORCH)" = cpu ]; then $(BIN)/pip install --quiet $(PINNED) --index-url $(FOR_CPUS); fi
	$(BIN)/pip install --quiet --requirement requirements.lock
	$(BIN)/pip install --quiet --no-deps --editable .
	$(BIN)/python -m course.pretrained smollm2-135m minilm-l6
	touch $@

newest:  ## make .venv with the newest versions that pyproject.toml allows, in place of those of requirements.lock
	$(PYTHON) -c $(KNOWN)
	$(PYTHON) -m venv --clear .venv
	if [ "$(TORCH)" = cpu ]; then $(BIN)/pip install --quiet torch --index-url $(FOR_CPUS); fi
	$(BIN)/pip install --quiet --upgrade --upgrade-strategy eager --editable '.[student,grader,postgres,cluster,book,dev,trained]'
	$(BIN)/python -m course.pretrained smollm2-135m minilm-l6
	touch $(READY)

demo: $(READY)  ## the main job: release the chapters, make a class of a dozen, grade it, write build/demo/
	autograder release --check
	autograder bundle
	autograder demo

test: $(READY)  ## all tests: code, chapters, receipts, release, book
	python tests/run.py

arithmetics: $(READY)  ## the notebooks give their stored outputs in this processor's arithmetic and an old one's
	NOTEBOOKS="$(NOTEBOOKS)" python tests/run.py notebooks arithmetic

proofs: $(READY)  ## check the proofs with Rocq, which apt-get installs where it is missing
	python -m book.proofs --install

answers: $(READY)  ## seal anew what the book needs to judge answers, where a test or an answers.py changed
	python -m book.tools node
	python -m book.sealing

lab: $(READY)  ## JupyterLab on the students' notebooks, with nbgrader's Validate button
	JUPYTER_CONFIG_PATH=$(CURDIR)/jupyter jupyter lab release

book: $(READY)  ## build/book/html; with SOLUTIONS=show, solutions too
	python -m book.tools node chromium
	python -m book.build

pdf: $(READY)  ## build/book/mathematics-of-transformers.pdf, the whole book
	python -m book.tools node chromium
	python -m book.pdf

epub: $(READY)  ## build/book/mathematics-of-transformers.epub, checked by epubcheck
	python -m book.tools node chromium epubcheck java
	python -m book.epub

dist: $(READY)  ## build/dist: the students' zip, PDF, EPUB, wheel, sdist, checksums; TAG=v1.2.3 must name this version
	python -m book.tools node chromium epubcheck java
	python -m book.dist $(TAG)

lighthouse: $(READY)  ## how fast and how accessible the pages are, judged by Lighthouse
	python -m book.tools node npx chromium
	python -m book.build
	python -m benchmarks.lighthouse

tools: $(READY)  ## install every program beside Python that is missing (book/tools.py has the list)
	python -m book.tools

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

audit:  ## are there known vulnerabilities in what requirements.lock pins? pip-audit asks the package index
	$(PYTHON) -m venv $(AUDIT)
	$(AUDIT)/bin/pip install --quiet pip-audit
	$(AUDIT)/bin/python -m pip_audit --strict --disable-pip --no-deps --requirement requirements.lock

clean:  ## remove build/ and .venv
	rm -rf build .venv
