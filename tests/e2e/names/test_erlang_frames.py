# SPDX-License-Identifier: Apache-2.0
"""Frames of Erlang and Elixir in samples of programs that were started without any option, against the stack traces of the runtime itself
(tests/workloads/scripts/erlshares.erl, shares.exs)."""
import os
import re
import subprocess

from conftest import ROOT, need, need_root
from scripting import stacks

SCRIPTS = os.path.join(ROOT, "tests", "workloads", "scripts")


def compiled(scratch):
    need("erlc")
    subprocess.run(["erlc", "-o", scratch, os.path.join(SCRIPTS, "erlshares.erl")], check=True, capture_output=True)
    return ["-noshell", "-noinput", "-pa", scratch, "-s", "erlshares", "main"]


def recorded(sonde, store, command, seconds="3s", env=None):
    """(the lines that the program said first, the stacks of its process)."""
    child = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True, env=dict(os.environ, **(env or {})))
    try:
        told = list(iter(lambda: child.stdout.readline().rstrip("\n"), ""))
        assert told, "it did not begin"
        sonde("record", "-d", "1s", "--pid", child.pid, store=store, check=True)  # its file's index is kept from now on
        sonde("record", "--freq", "499", "-d", seconds, "--pid", child.pid, store=store, check=True)
    finally:
        child.kill()
        child.wait(20)
        child.stdout.close()
    return told, stacks(store, "cpu")


def frames_of(line):
    """Root first, of Erlang's own words."""
    return tuple((name, "" if file == "-" else file, int(at)) for name, file, at in
                 (f.rsplit(" ", 2) for f in reversed(line.split(";"))))


def check(found, told, leaf, plain=lambda f: f):
    """Every sample that ends in the function `leaf` has callers that a stack trace has, with their lines."""
    right = wrong = 0
    for frames, n in found:
        erlang = [f for f in frames if f[0] == "erlang"]
        user = [f for f in frames if f[0] == "erlang" or (f[1] or "").startswith("memfd")]
        if not erlang or user[-1][1] != leaf or len(user) != len(erlang):
            continue
        chain = tuple(plain((f[1], f[2], f[3])) for f in erlang[:-1])
        right += n * (chain in told)
        wrong += n * (chain not in told)
        assert chain in told, (chain, sorted(told))
    everything = sum(n for frames, n in found)
    print(f"{right} of {everything} samples have the callers that the runtime says, {wrong} others")
    return right, everything


def check_erlang(found, said):
    told = {frames_of(line) for line in said}
    names = {name for chain in told for name, _, _ in chain}
    assert "erlshares:'-maps_of/1-fun-0-'/2" in names and "lists:map_1/2" in names, names
    right, everything = check(found, told, "erlshares:spin/2")
    assert right > 20 and right >= 0.8 * everything  # the rest is the scheduler and the beginning


def test_frames_of_erlang_are_those_of_its_stack_traces(sonde, store, scratch):
    need_root()
    need("erl")
    said, found = recorded(sonde, store, ["erl", *compiled(scratch)])
    check_erlang(found, said)


def test_functions_of_elixir_are_written_as_elixir_does(sonde, store, scratch):
    need_root()
    need("elixir")
    said, found = recorded(sonde, store, ["elixir", os.path.join(SCRIPTS, "shares.exs")], env={"HOME": scratch})
    functions = {re.sub(r"^(\(.*?\) )?\S+:\d+: ", "", f) for line in said for f in line.split(";")}
    assert {"Shop.Cart.total/1", "anonymous fn/2 in Shop.Cart.each/1", "Shop.Cart.run/1"} <= functions, functions
    met = {f[1] for frames, _ in found for f in frames if f[0] == "erlang" and "Shop" in f[1]}
    assert {"Shop.Cart.total/1", "Shop.Cart.price/2", "Shop.Cart.spin/2", "Shop.Cart.run/1"} <= met <= functions | {"Shop.Cart.spin/2"}, (met, functions)
    leaves = sum(n for frames, n in found if (frames[-1][1] or "") == "Shop.Cart.spin/2")
    assert leaves >= 0.5 * sum(n for _, n in found)


def test_with_jperf_functions_have_the_same_names(sonde, store, scratch):
    need_root()
    need("erl")
    _, found = recorded(sonde, store, ["erl", "+JPperf", "true", *compiled(scratch)])
    chains = [[f[1] for f in frames] for frames, n in found for _ in range(n)]
    whole = [c for c in chains if {"erlshares:spin/2", "erlshares:leaf/2", "erlshares:outer/1", "erlshares:main/1"} <= set(c)]
    assert len(whole) >= 0.8 * len(chains), chains[:3]
