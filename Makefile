# make eval: the main job. make test: all checks and tests. Both set up what they need, and are quick the second time.
.PHONY: man eval test test-agents test-vm check bench bench-peers clean setup
.DEFAULT_GOAL := help

PY := .venv/bin/python
JOBS ?= 2
# Tests mostly wait: more of them at once than a small machine has cores.
TEST_JOBS ?= 3

help:
	@echo "make eval    run every executable scenario for real, and the agents that must fail; writes runs/…/report.md"
	@echo "make test    make check, then the tests"
	@echo "make test-agents  the real agent programs against a scripted model, without a network; installs them with npm"
	@echo "make test-vm  labd in a QEMU guest (V4L2, USB gadget, USB serial; downloads its kernel), and PCs that boot from it"
	@echo "make check   lint, types, import boundaries, drift of the scenarios against the live command line, the gate,"
	@echo "             and of the ledger's page against its data"
	@echo "make bench   benchmarks, each beside a bare baseline or a peer"
	@echo "make bench-peers  the torture cases against labd and its peers; writes docs/torture.md"
	@echo "make man     the manual pages into build/man, held against man and mandoc where they are installed"
	@echo "make clean   remove the .venvs, caches and build output; runs/ stays"

setup:
	@sh packaging/bootstrap.sh

eval: setup
	@.venv/bin/labd-eval run --all --jobs $(JOBS)
	@.venv/bin/labd-eval run --subject git --all --jobs $(JOBS)
	@.venv/bin/labd-eval run --subject atlas --all --jobs $(JOBS)

test: check
	@$(PY) -m pytest -n $(TEST_JOBS) --dist loadfile
	@$(PY) -m tests.agents --if-installed

# Installs the four programs with npm into .agents/ (about 1 GB). Proves the harness, never a model's skill.
test-agents: setup
	@$(PY) -m tests.agents

# Downloads Debian's kernel (70 MB) into .labvm/, installs nothing; says why where it can't run.
test-vm: setup
	@$(PY) -m pytest -m vm tests/netboot
	@$(PY) -m tests.labvm

check: setup
	@.venv/bin/ruff check .
	@.venv/bin/ruff format --check -q .
	@.venv/bin/mypy
	@.venv/bin/lint-imports --no-cache -q 2>/dev/null || .venv/bin/lint-imports --no-cache
	@.venv/bin/labd-eval check
	@.venv/bin/labd-eval check --subject git
	@.venv/bin/labd-eval check --subject atlas
	@.venv/bin/labd-eval gate --if-needed -q
	@.venv/bin/labd-eval ledger --check

bench: setup
	@$(PY) -m tests.bench

# Installs what it may (apt when root, a throwaway venv), takes some ten minutes; 1 when labd fails a case.
bench-peers: setup
	@$(PY) -m tests.torture --install --write

man: setup
	@.venv/bin/labd man --dir build/man
	@.venv/bin/labd-eval man --dir build/man
	@$(PY) -m pytest -q tests/test_manpages.py

clean:
	rm -rf .venv .venv-peers build dist .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
