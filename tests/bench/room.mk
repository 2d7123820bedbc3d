# tests/bench: what sonde costs and how fast it answers, beside its peers in the same run.
.PHONY: bench bench-stacks bench-smoke
bench: all $(B)/tests/makestore
	@$(PYTHON) tests/bench/bench.py --write docs/BENCHMARKS.md

# one short round: that everything runs
bench-smoke: all $(B)/tests/makestore
	@$(PYTHON) tests/bench/bench.py --smoke
	@$(PYTHON) tests/bench/stacks.py --smoke

bench-stacks: all
	@$(PYTHON) tests/bench/stacks.py --write docs/BENCHMARKS.md
