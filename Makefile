# make run     set up and run the core society of Terra
# make test    set up and run every check that CI runs
# make setup   only set up

PYTHON ?= python3
VENV := .venv
READY := $(VENV)/.ready

.PHONY: setup run test protos bench clean

setup: $(READY)

$(READY): pyproject.toml constraints.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo "Ethnos needs Python 3.11 or newer; set PYTHON=..."; exit 1; }
	test -x $(VENV)/bin/python || $(PYTHON) -m venv $(VENV)
	$(VENV)/bin/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[dev]'
	touch $@

run: $(READY)
	$(VENV)/bin/ethnos run terra

test: $(READY)
	scripts/check

protos: $(READY)
	scripts/protos

bench: $(READY)
	$(VENV)/bin/python bench/society.py

clean:
	rm -rf $(VENV) build dist src/*.egg-info .mypy_cache .ruff_cache .pytest_cache .hypothesis
