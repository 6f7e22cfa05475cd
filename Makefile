# Eight commands; all but image-test work on a fresh clone with nothing but Python 3.11 and make.
PYTHON ?= $(shell command -v python3.11 || command -v python3)
PORT ?= 8000
MODEL ?= l6
BUNDLE ?= bundles/$(if $(filter l6,$(MODEL)),default,$(MODEL))
VENV := .venv
BIN := $(VENV)/bin
PIP_INSTALL := $(BIN)/pip install --constraint requirements.lock

.PHONY: serve test export bench loadtest audit image-test clean

serve: $(VENV)/.export $(BUNDLE)/manifest.json  ## serve a model (MODEL=l6, l3 or l2) on 127.0.0.1:$(PORT)
	$(BIN)/python -m service --bundle $(BUNDLE) --host 127.0.0.1 --port $(PORT)

test: $(VENV)/.dev  ## lint, type-check, run every test
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/pytest

export: $(BUNDLE)/manifest.json  ## build the model's bundle if it is absent

bench: $(VENV)/.export $(BUNDLE)/manifest.json  ## speed and batch spread of the model's bundle
	$(BIN)/python deploy/benchmarks/bench_bundle.py --bundle $(BUNDLE)

loadtest: $(VENV)/.loadtest $(if $(URL),,$(VENV)/.export $(BUNDLE)/manifest.json)  ## latency and goodput by load, as one page; URL= of a service that runs, OPTIONS= for more
	$(BIN)/python -m deploy.loadtest $(if $(URL),--url $(URL),--bundle $(BUNDLE)) $(OPTIONS)

audit:  ## known vulnerabilities of the locked versions
	AUDIT_REQUIRED=1 PYTHON=$(PYTHON) .ci/audit

image-test:  ## build the image, start it read-only, score with it; needs docker, podman or buildah
	HOST_PIP=1 deploy/docker/build_and_smoke.sh

clean:  ## remove everything that these commands made
	rm -rf $(VENV) .venv-audit bundles build dist *.egg-info .mypy_cache .ruff_cache .pytest_cache .hypothesis

$(BUNDLE)/manifest.json: | $(VENV)/.export
	$(BIN)/python -m model_export export --model $(MODEL) --precision int8 --out $(BUNDLE)

$(BIN)/python:
	$(PYTHON) -m venv $(VENV)

$(VENV)/.export: pyproject.toml requirements.lock | $(BIN)/python
	$(PIP_INSTALL) --editable '.[export]'
	touch $@

$(VENV)/.loadtest: pyproject.toml requirements.lock | $(BIN)/python
	$(PIP_INSTALL) --editable '.[loadtest]'
	touch $@

$(VENV)/.dev: pyproject.toml requirements.lock | $(BIN)/python
	$(PIP_INSTALL) --editable '.[dev]'
	touch $@ $(VENV)/.export $(VENV)/.loadtest
