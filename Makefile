# Two commands do everything: `make run` and `make test`. The rest is for people who work on Paddock.
PYTHON ?= python3
BIN := .venv/bin
export PIP_DISABLE_PIP_VERSION_CHECK := 1
unexport PYTHONDONTWRITEBYTECODE
unexport VIRTUAL_ENV

.PHONY: run cluster install test check fix lint test-long prove mutate bench clean

run: install  ## start the host on loopback; Ctrl-C stops it
	@$(BIN)/paddock serve $(ARGS)

cluster: .venv/.installed-dev  ## PostgreSQL, NATS, an imitation of S3 and three hosts, until Ctrl-C
	@cd tests && ../$(BIN)/python -m local_cluster $(ARGS)

install: .venv/.installed  ## install into .venv, quick when nothing changed

.venv/.installed: requirements/run.txt pyproject.toml sdk/pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "Paddock needs Python 3.11 or newer; try: make PYTHON=python3.12 " + "$(MAKECMDGOALS)")'
	@test -x $(BIN)/python || $(PYTHON) -m venv .venv
	@echo "installing into .venv ..."
	@$(BIN)/python -m pip install --quiet --require-hashes -r requirements/run.txt
	@$(BIN)/python -m pip install --quiet --no-deps --no-build-isolation -e ./sdk -e .
	@touch $@

.venv/.installed-dev: .venv/.installed requirements/dev.txt
	@echo "installing the tools for tests ..."
	@$(BIN)/python -m pip install --quiet --require-hashes -r requirements/dev.txt
	@touch $@

test: .venv/.installed-dev  ## everything CI runs on behaviour
	@$(BIN)/python -m pytest -n 2 --dist loadgroup $(ARGS)

test-long: .venv/.installed-dev  ## the long set: searches to the end, kill loops, many random cases
	@PADDOCK_LONG=1 $(BIN)/python -m pytest -n 2 --dist loadgroup --timeout 1800 -m long $(ARGS)

lint: .venv/.installed-dev
	@$(BIN)/ruff format --check .
	@$(BIN)/ruff check .
	@$(BIN)/lint-imports --no-cache
	@$(BIN)/basedpyright

check: lint test  ## format, lint, strict types, import contracts, tests

fix: .venv/.installed-dev  ## tidy
	@$(BIN)/ruff format .
	@$(BIN)/ruff check --fix .

bench: .venv/.installed-dev  ## figures against the floor, in one run
	@$(BIN)/python -m bench $(ARGS)

mutate: .venv/.installed-dev  ## put small wrongs into the gate and see whether its tests notice; many minutes
	@cd tests && ../$(BIN)/python -m mutation $(ARGS)

prove: .venv/.installed-dev  ## explore the session machine exhaustively
	@cd tests && ../$(BIN)/python -m explorer $(ARGS)

clean:
	rm -rf .venv dist build
