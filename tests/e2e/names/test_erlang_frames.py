# SPDX-License-Identifier: Apache-2.0
"""Frames of Erlang and Elixir in samples of programs that were started without any option, against the stack traces of the runtime itself
(tests/workloads/scripts/erlshares.erl, shares.exs)."""
import glob
import os
import re
import subprocess
import sys
import threading

import pytest

import servers
import talks
from conftest import ROOT, need, need_root
from procfs import children
from scripting import stacks, unpacked

# of Debian's suites; that of sid (29) has none of the symbols that lead to its tables
SUITES = {"27": "trixie"}
OTP = "erlang-base libc6 libtinfo6 zlib1g libstdc++6 libgcc-s1 libzstd1 libsctp1".split()
SCRIPTS = os.path.join(ROOT, "tests", "workloads", "scripts")


# a C function of BEAM's and the function of erlbelow.erl that has it called
CALLS = {"ets_lookup_2": "erlbelow:looked/1", "MD5Update": "erlbelow:hashed/1", "term_to_binary_1": "erlbelow:packed/1", "eq": "erlbelow:compared/2"}


def compiled(scratch, module="erlshares"):
    need("erlc")
    subprocess.run(["erlc", "-o", scratch, os.path.join(SCRIPTS, f"{module}.erl")], check=True, capture_output=True)
    return ["-noshell", "-noinput", "-pa", scratch, "-s", module, "main"]


def recorded(sonde, store, command, seconds="3s", env=None):
    """(the lines that the program said first, the stacks of its process)."""
    child = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True, env=dict(os.environ, **(env or {})))
    try:
        told = list(iter(lambda: child.stdout.readline().rstrip("\n"), ""))
        assert child.poll() is None, "it did not begin"
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


def check_below(found):
    """Each C function that only one function calls has that one as its caller; what ran is known of nearly all samples."""
    functions, scheduler, neither = kinds(found)
    right = {c: 0 for c in CALLS}
    for frames, n in found:
        for c in CALLS.keys() & {f[1] for f in frames if f[0] != "erlang"}:
            erlang = [f[1] for f in frames if f[0] == "erlang"]
            if erlang:  # the function around the call is known by its return address, before its callers are
                assert erlang[-2:] in (["erlbelow:loop/3", CALLS[c]], [CALLS[c]]), (c, frames)
                right[c] += n * (len(erlang) > 1)
    print(f"{functions} samples with Erlang's functions, {scheduler} of the scheduler, {neither} without either; of C functions with one caller {right}")
    assert all(right.values()) and functions > 20, right
    assert functions + scheduler >= 0.8 * (functions + scheduler + neither)  # the first ones of each thread have no callers


def test_callers_of_c_code_are_functions_of_erlang(sonde, store, scratch):
    need_root()
    need("erl")
    _, found = recorded(sonde, store, ["erl", *compiled(scratch, "erlbelow")], "4s")
    check_below(found)


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


def in_suite(version, scratch, arguments):
    """(the command, its environment) of an Erlang with its own C library: everything in a root of its own, in the same process."""
    root = os.path.dirname(unpacked(SUITES[version], OTP))
    for folder in ("dev", "proc", "tmp", "scratch"):
        os.makedirs(os.path.join(root, folder), exist_ok=True)
    for name in ("lib", "lib64", "bin"):
        if not os.path.lexists(os.path.join(root, name)):
            os.symlink(f"usr/{name}", os.path.join(root, name))
    (erts,) = glob.glob(f"{root}/usr/lib/erlang/erts-*/bin")
    erts = erts[len(root):]
    inside = f"mount --bind /dev {root}/dev; mount --bind /proc {root}/proc; mount --bind {scratch} {root}/scratch; exec chroot {root} {erts}/erlexec"
    return ["unshare", "-m", "sh", "-c", f'{inside} "$@"', "sh", *arguments], {"ROOTDIR": "/usr/lib/erlang", "BINDIR": erts, "EMU": "beam",
                                                                              "PROGNAME": "erl", "HOME": "/tmp"}


@pytest.mark.live
@pytest.mark.parametrize("version", SUITES)
def test_frames_of_another_otp_are_those_of_its_stack_traces(sonde, store, scratch, version):
    need_root()
    compiled(scratch)
    command, env = in_suite(version, scratch, ["-noshell", "-noinput", "-pa", "/scratch", "-s", "erlshares", "main"])
    said, found = recorded(sonde, store, command, env=env)
    check_erlang(found, said)


@pytest.mark.live
@pytest.mark.parametrize("version", SUITES)
def test_callers_of_c_code_in_another_otp(sonde, store, scratch, version):
    need_root()
    compiled(scratch, "erlbelow")
    command, env = in_suite(version, scratch, ["-noshell", "-noinput", "-pa", "/scratch", "-s", "erlbelow", "main"])
    _, found = recorded(sonde, store, command, "4s", env=env)
    check_below(found)


def kinds(found):
    """Samples in code that BEAM made: with functions of Erlang, of the scheduler, and neither."""
    functions = scheduler = neither = 0
    for frames, n in found:
        erlang = {f[1] for f in frames if f[0] == "erlang"}
        functions += n * bool(erlang - {"process_main"})
        scheduler += n * (erlang == {"process_main"})
        neither += n * (not erlang and any((f[1] or "").startswith("memfd") for f in frames))
    return functions, scheduler, neither


def functions_of(modules):
    """What compiled files say that they define: {"rabbit_channel:handle_method/3", ...}."""
    ask = ("lists:foreach(fun(F) -> case beam_lib:chunks(F, [locals, exports]) of {ok, {M, L}} -> [[io:format(\"~tp:~tp/~p~n\", [M, N, A]) || {N, A} <- V] || {_, V} <- L];"
           " _ -> ok end end, init:get_plain_arguments()), halt().")
    done = subprocess.run(["erl", "-noshell", "-eval", ask, "-extra", *modules], capture_output=True, text=True, check=True)
    return set(done.stdout.splitlines())


@pytest.mark.live
def test_a_rabbitmq_under_load_shows_its_own_functions(sonde, store, scratch):
    """Each name of RabbitMQ's is one that its compiled files define."""
    need_root()
    need("erl")
    try:
        with talks.rabbit(scratch) as (port, r):
            pika = talks.library("pika")
            stop = threading.Event()

            def load():
                channel = pika.BlockingConnection(pika.ConnectionParameters("127.0.0.1", port)).channel()
                channel.queue_declare("jobs")
                while not stop.is_set():
                    channel.basic_publish("", "jobs", b"x" * 100)
                    channel.basic_get("jobs", auto_ack=True)
            threads = [threading.Thread(target=load) for _ in range(2)]
            for t in threads:
                t.start()
            pid = r.started[-1][0].pid
            while os.path.basename(os.readlink(f"/proc/{pid}/exe")) != "beam.smp":
                pid = children(pid)[-1]  # of its shells
            sonde("record", "--families", "cpu", "-d", "2s", "--pid", pid, store=store, check=True)
            sonde("record", "--families", "cpu", "--freq", "499", "-d", "8s", "--pid", pid, store=store, check=True)
            stop.set()
            for t in threads:
                t.join(60)
    except servers.Missing as e:
        pytest.skip(f"missing: {e}")
    found = stacks(store, "cpu")
    erlang, scheduler, nameless = kinds(found)
    met = {f[1] for frames, _ in found for f in frames if f[0] == "erlang" and f[1].startswith("rabbit_")}
    known = functions_of(glob.glob("/usr/lib/rabbitmq/lib/rabbitmq_server-*/plugins/rabbit*/ebin/rabbit_*.beam"))
    print(f"{erlang} samples with Erlang's functions, {scheduler} of the scheduler, {nameless} without either; {len(met)} functions of RabbitMQ", file=sys.stderr)
    assert erlang > 50 and nameless <= 0.1 * (erlang + scheduler)
    assert len(met) > 20 and {m for m in met if "-" not in m} <= known, sorted(met - known)
    assert any(m.startswith("rabbit_reader:") for m in met) and any(m.startswith("rabbit_channel:") for m in met), sorted(met)
