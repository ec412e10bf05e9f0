# The commands of this repository. Each sets up what it needs in $(VENV) and says what the machine lacks.
VENV ?= .venv
BENCH ?= predict stream serving upload training_request new_products solver scale selection reading
export VENV PYTHON DATA
# Where Python may keep no compiled modules, each process compiles all that it imports: 2 to 4 seconds more.
export PYTHONDONTWRITEBYTECODE :=
bin := $(VENV)/bin
shared := -n 2 --dist loadfile --no-loadscope-reorder

.DEFAULT_GOAL := help
.PHONY: help demo serve test test-all guides check bench picture lock clean runtime dev

help: ## Show this list
	@echo "make TARGET, where TARGET is one of"
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  %-9s %s\n", $$1, $$2}' $(firstword $(MAKEFILE_LIST))
	@echo "Variables: VENV (now $(VENV)), PYTHON (3.11 or newer), ARGS (passed on), BENCH"

demo: runtime ## Forecast 23,812 real products end to end; ONCE=1 stops afterwards, DATA=file names the file
	@$(bin)/python -m examples.demo $(if $(filter 1 yes true,$(ONCE)),--once)

serve: runtime ## Run the service on http://127.0.0.1:8000 (settings: docs/operations.md)
	@exec $(bin)/ccmtl serve

test: dev ## Run the tests, on SQLite and on PostgreSQL
	@$(bin)/python -m pytest $(shared) -m "not slow and not landing" $(ARGS)

test-all: dev ## Run the tests with the slow ones, and with more examples
	@$(bin)/python -m pytest $(shared) --hypothesis-profile thorough $(ARGS)

guides: dev ## Run every command of the guides, on SQLite and PostgreSQL; ARGS="--page docs/http.md" runs some
	@$(bin)/python -m scripts.walk_guides $(ARGS)

check: dev ## Lint, check the format and the types
	@$(bin)/ruff check .
	@$(bin)/ruff format --check .
	@$(bin)/mypy
	@$(bin)/mypy examples benchmarks scripts
	@$(bin)/python -m pip --disable-pip-version-check check

bench: dev ## Run the measurements that the documentation quotes: most of an hour; BENCH="scale predict" runs some
	@for name in $(BENCH); do $(bin)/python -m "benchmarks.$$name" || failed=1; done; exit $${failed:-0}

picture: runtime ## Draw docs/ta_feng.svg anew from the real file
	@$(bin)/python -m benchmarks.picture

lock: dev ## Pin requirements/ anew from pyproject.toml
	@PATH="$(bin):$$PATH" sh scripts/lock.sh

clean: ## Remove the environment, caches and the demo's files; var/ (your data) stays
	rm -rf .venv .demo build dist *.egg-info .mypy_cache .pytest_cache .ruff_cache .hypothesis
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

runtime:
	@sh scripts/setup.sh runtime

dev: ## Add what tests and benchmarks need to the environment
	@sh scripts/setup.sh dev
