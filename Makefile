# Two commands do everything: `make run` and `make test`. The rest is for people who work on Paddock.
PYTHON ?= python3
BIN := .venv/bin
export PIP_DISABLE_PIP_VERSION_CHECK := 1
unexport PYTHONDONTWRITEBYTECODE
unexport VIRTUAL_ENV

CONSOLE := src/paddock/console_assets/index.html
CONSOLE_SOURCES := $(shell find console/src -type f 2>/dev/null) console/index.html console/vite.config.ts console/tsconfig.json

.PHONY: run cluster install console console-if-possible browser screenshots harnesses harnesses-acp have-harnesses have-harnesses-acp have-browser test check fix types lint test-long test-zones attack conformance walk prove mutate bench versus clean

run: install console-if-possible  ## start the host on loopback; Ctrl-C stops it
	@$(BIN)/paddock serve $(ARGS)

cluster: .venv/.installed-dev  ## PostgreSQL, NATS, an imitation of S3 and three hosts, until Ctrl-C
	@cd tests && ../$(BIN)/python -m local_cluster $(abspath $(ARGS))

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

console: $(CONSOLE)  ## build the web console; needs Node.js 20 or newer

$(CONSOLE): console/node_modules/.installed $(CONSOLE_SOURCES)
	@echo "building the web console ..."
	@cd console && npm run --silent build -- --logLevel warn

console/node_modules/.installed: console/package-lock.json console/package.json
	@echo "installing what the web console is built with ..."
	@cd console && npm install --silent --no-progress --no-save  # not ci: it wants the native parts of every platform
	@touch $@

console-if-possible:
	@if command -v npm >/dev/null 2>&1; then \
	  $(MAKE) -s --no-print-directory console || echo "The web console could not be built (see above); everything else works without it."; \
	elif [ ! -e $(CONSOLE) ]; then \
	  echo "The web console is not built: install Node.js 20 or newer, then run make console. Everything else works without it."; \
	fi

browser:  ## install Debian's Chromium, and a font with Chinese, for the tests of the web console
	@apt-get install -y -qq chromium fonts-noto-cjk || (apt-get update -qq && apt-get install -y -qq chromium fonts-noto-cjk)

screenshots: .venv/.installed-dev console  ## the pictures of the README, taken from the running product
	@cd tests && ../$(BIN)/python -m browser.screenshots ../docs/pictures


harnesses: harnesses/node_modules/.installed  ## the coding harnesses we are tested with, pinned, for this directory only

harnesses/node_modules/.installed: harnesses/package.json harnesses/package-lock.json
	@command -v npm >/dev/null || { echo "make harnesses needs Node and npm; install Node 20 or newer first"; exit 1; }
	@echo "installing Claude Code and Codex into harnesses/ (about 800 MB) ..."
	@cd harnesses && npm ci --no-audit --no-fund --loglevel=error
	@touch $@

harnesses-acp: harnesses/acp/node_modules/.installed  ## Kimi Code with the Node it needs, opencode, Gemini CLI and the ACP adapters of Claude Code and Codex, for the long tests

harnesses/acp/node_modules/.installed: harnesses/acp/package.json harnesses/acp/package-lock.json
	@command -v npm >/dev/null || { echo "make harnesses-acp needs Node and npm; install Node 20 or newer first"; exit 1; }
	@echo "installing Kimi Code, opencode, Gemini CLI and the ACP adapters of Claude Code and Codex into harnesses/acp/ (about 1.6 GB) ..."
	@cd harnesses/acp && npm install --no-save --no-audit --no-fund --loglevel=error  # not ci: it wants the native parts of every platform
	@touch $@

have-harnesses:  # where there is no npm the tests say what they did not run, and fail in CI
	@if command -v npm >/dev/null; then $(MAKE) -s harnesses || echo "the harnesses could not be installed"; fi
	@if [ -n "$$CI" ] && node -e 'const [a, b] = process.versions.node.split("."); process.exit(a * 100 + +b < 2219 ? 1 : 0)' 2>/dev/null; then $(MAKE) -s have-harnesses-acp; fi  # Kimi Code

have-harnesses-acp:  # the same for those that only the long set uses
	@if command -v npm >/dev/null; then $(MAKE) -s harnesses-acp || echo "the ACP harnesses could not be installed"; fi

have-browser:  # the same for the browser; only an administrator may install it
	@command -v chromium >/dev/null || [ "$$(id -u)" -ne 0 ] || $(MAKE) -s browser >/dev/null || echo "Chromium could not be installed"

test: .venv/.installed-dev have-harnesses have-browser console-if-possible  ## everything CI runs on behaviour
	@$(BIN)/python tests/twice.py -n 3 --dist loadgroup $(ARGS)  # much of it waits, so three workers keep two cores at work

test-long: .venv/.installed-dev have-harnesses have-harnesses-acp  ## the long set: searches to the end, kill loops, many random cases
	@PADDOCK_LONG=1 $(BIN)/python -m pytest -n 2 --dist loadgroup --timeout 1800 -m long $(ARGS)

test-zones: .venv/.installed-dev  ## all that starts no hosts, on machines in three time zones; part of the long set
	@$(BIN)/python -m pytest tests/rules/test_time_zones.py -m long -k zone_of_the_machine -v --timeout 1800 $(ARGS)

attack: .venv/.installed-dev  ## every way in that we know, tried on fresh hosts; prints one line
	@PADDOCK_LONG=1 $(BIN)/python tests/attack.py -n 2 --dist loadgroup $(ARGS)

lint: .venv/.installed-dev
	@$(BIN)/ruff format --check .
	@$(BIN)/ruff check .
	@$(BIN)/lint-imports --no-cache
	@$(BIN)/basedpyright

check: lint test  ## format, lint, strict types, import contracts, tests

fix: .venv/.installed-dev  ## tidy
	@$(BIN)/ruff format .
	@$(BIN)/ruff check --fix .

types: .venv/.installed-dev  ## write the clients' types anew from the API's document: the console's and the Python client's
	@cd tests && ../$(BIN)/python -m api_types

conformance: .venv/.installed-dev  ## write docs/spec/conformance.md anew from the specs and the tests, and the matrix of gate.md from its table
	@cd tests && ../$(BIN)/python -m gate.matrix && ../$(BIN)/python -m conformance

walk: .venv/.installed-dev  ## send one AG-UI message through a real host and print the functions it crosses, in order
	@$(BIN)/python tests/walked.py

bench: .venv/.installed-dev  ## figures against the floor, in one run
	@$(BIN)/python -m bench $(ARGS)

versus: .venv/.installed-dev  ## figures beside another checkout, in turns: make versus BEFORE=../paddock-before
	@$(BIN)/python -m bench.versus $(abspath $(BEFORE)) $(ARGS)

mutate: .venv/.installed-dev  ## put small wrongs into the gate and see whether its tests notice; many minutes
	@cd tests && ../$(BIN)/python -m mutation $(ARGS)

prove: .venv/.installed-dev  ## explore the session machine exhaustively
	@cd tests && ../$(BIN)/python -m explorer $(ARGS)

clean:
	rm -rf .venv dist build
