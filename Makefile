# Everything this project can do. `make` lists it; `make book` and `make test` set up what they
# need by themselves. All logic longer than a line or two lives in tools/.

VENV := .venv
PY := $(VENV)/bin/python
# the first Python that is new enough; the environment is made with it
PYTHON ?= $(shell for p in python3 python3.13 python3.12 python3.11 python3.14; do \
	$$p -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null && echo $$p && break; done)
TORCH ?=
PORT ?= 8000

# Two threads on shared cores are slower and print other numbers.
export OMP_NUM_THREADS := 1
export MKL_NUM_THREADS := 1
# Where this is set, each start of Python compiles torch anew: seconds for every chapter and test.
unexport PYTHONDONTWRITEBYTECODE

.DEFAULT_GOAL := help
.NOTPARALLEL:
.PHONY: help install book page serve unit test test-deep anywhere browser sandbox lint format notebooks colab \
	bundle assignment verify-assignments quiz grader attacks release publish experiments experiments-verify \
	bench links lock clean distclean

help: ## this list
	@echo "Attention, Patch by Patch. The two commands: make book, make test."
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "%-20s %s\n", $$1, $$2 }' Makefile

install: ## the environment in .venv (TORCH=cpu: without CUDA, on Linux)
	@test -n "$(PYTHON)" || { echo "Python 3.11 or newer is needed: on Debian or Ubuntu, sudo apt install python3"; exit 1; }
	@$(PYTHON) tools/environment.py $(if $(V),--verbose) $(if $(TORCH),--torch $(TORCH))

book: install ## the whole site in _build/html: execute, render, export notebooks, check (V=1: say all)
	@$(PY) -m website.build $(if $(V),--verbose)

page: install ## one page on its own, quickly: make page PAGE=book/preview.md
	@test -n "$(PAGE)" || { echo "Which page? make page PAGE=book/preview.md"; exit 1; }
	@$(PY) -m website.build.preview $(PAGE)

serve: install ## show the site on http://localhost:8000 (PORT=...)
	@$(PY) -m website.build || test -f _build/html/index.html
	@echo "http://localhost:$(PORT)  (stop with Ctrl-C)"
	@$(PY) -m http.server -d _build/html --bind 127.0.0.1 $(PORT)

unit: install ## the package and the learner's checks, in a minute on one core, without the book
	@$(PY) -m pytest -m "not (deep or slow or browser or site)" tests/package tests/checks $(ARGS)

test: install ## test what needs no book, build it, test the rest (ARGS="-k word" for a choice)
	@$(PY) -m tools.run_tests $(ARGS)

test-deep: install ## every test, the long ones too
	@$(PY) -m tools.run_tests --deep $(ARGS)

browser: install
	@$(PY) -m tools.browser --install

sandbox: install
	@$(PY) -m tools.sandbox --install

anywhere: install ## do the pages hold on other processors? (hours; PAGE=..., ARGS="--report")
	@$(PY) -m tools.anywhere.older
	@$(PY) -m tools.anywhere $(PAGE) $(ARGS)

lint: install ## ruff, types (mypy), scripts (oxlint, oxfmt), and the book's rules for its sources
	@$(PY) -m ruff check . && $(PY) -m ruff format --check .
	@$(PY) -m mypy && $(VENV)/bin/oxlint && $(VENV)/bin/oxfmt --check "**/*.js"
	@$(PY) -m tools.check_prose

format: install ## let ruff and oxfmt put the code in order
	@$(PY) -m ruff check --fix . && $(PY) -m ruff format . && $(VENV)/bin/oxfmt "**/*.js"

notebooks: book ## run all notebooks of this build in a stand-in for Colab
	@$(PY) -m tools.run_notebooks $(NAME)

bundle: book ## one zip with all notebooks and the package, for places without network
	@$(PY) -m tools.bundle

assignment: install ## draw, prove and write an assignment: make assignment A=1 KEY_FILE=course.key (or MASTER=path)
	@$(PY) -m website.assignments $(A) $(if $(MASTER),--master "$(MASTER)") $(if $(KEY_FILE),--key-file "$(KEY_FILE)")

verify-assignments: install ## prove every assignment: solutions, mutants, other right answers (ARGS="--draws 20")
	@$(PY) -m website.assignments.verify $(ARGS)

quiz: book ## the book's predictions and concept checks as a practice quiz for Moodle and Canvas
	@$(PY) -m tools.quiz

colab: ## inside Colab's own image: run published notebooks as a reader does (NOTEBOOKS=folder)
	@python3 -m tools.colab_image $(NOTEBOOKS)

grader: install ## the grader as a wheel for instructors, in _build/gradebox
	@cd src/gradebox && ../../$(PY) -m hatchling build -t wheel -d ../../_build/gradebox

attacks: sandbox ## try every attack on the grader, with and without its sandboxes, and record it
	@VITBOOK_REQUIRE_SANDBOX=1 ATTACKS_JSON=book/classroom/attacks.json $(PY) -m pytest -v -s tests/gradebox/test_attacks.py

release: install ## version, change log, commit and tag, on this machine only: make release VERSION=0.2.0
	@$(PY) -m tools.release $(VERSION)

publish: book ## push the site of a tagged commit to the branch that is read (REMOTE=origin)
	@$(PY) -m tools.publish $(REMOTE)

experiments: install ## run recorded experiments from scratch: make experiments NAME=matrix_products
	@$(PY) -m experiments $(NAME)

experiments-verify: install ## do the records still follow from the code? (two minutes, no data sets)
	@$(PY) -m experiments --verify $(NAME)

bench: install ## the budgets: build times, page weights, speed against other packages
	@$(PY) -m tools.bench $(ARGS)

links: book ## do the links to other sites still lead somewhere?
	@$(PY) -m tools.links

lock: install ## resolve requirements.in into requirements.txt, for every platform
	@$(VENV)/bin/uv pip compile --universal --generate-hashes --python-version 3.11 requirements.in -o requirements.txt

clean: ## remove what was built
	rm -rf _build .pytest_cache .ruff_cache

distclean: clean ## remove the environments too
	rm -rf $(VENV) .venv-colab
