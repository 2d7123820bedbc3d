# tests/bench: what sonde costs and how fast it answers, beside its peers in the same run.
.PHONY: bench bench-smoke
bench: all $(B)/tests/makestore
	@$(PYTHON) tests/bench/bench.py --write docs/BENCHMARKS.md

# one short round: that everything runs
bench-smoke: all $(B)/tests/makestore
	@$(PYTHON) tests/bench/bench.py --smoke
