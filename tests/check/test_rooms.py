# SPDX-License-Identifier: Apache-2.0
"""Who may include and link what (docs/ARCHITECTURE.md), and that each header stands alone."""
import os
import re

import pytest

from conftest import BUILD, ROOT, families, program, run, text, tracked

SOURCES = [f for f in tracked() if f.endswith((".c", ".h")) and not f.startswith("tests/")]
HEADERS = [f for f in SOURCES if f.endswith(".h")]

# room -> the prefixes its quoted includes may have; the longest matching room holds
MAY = {
    "probes": ["probes/"],
    "schema/base": ["schema/base/"],
    "schema/families": ["schema/base/", "schema/families/"],
    "schema/probespec": ["schema/base/", "schema/probespec/"],
    "schema/jfr": ["schema/base/", "schema/jfr/"],
    "schema/image": ["schema/base/", "schema/image/"],
    "schema/sql": ["schema/base/", "schema/sql/"],
    "schema/extension": ["schema/base/", "schema/store/packed/", "schema/extension/"],
    "schema/facts": ["schema/base/", "schema/facts/"],
    "loaders/lib/host": ["schema/", "loaders/lib/host/", "loaders/lib/runtimes/", "loaders/lib/sandbox/", "probes/"],
    "loaders/lib/bpf": ["schema/", "loaders/lib/", "probes/lib/scope.h", "probes/lib/stack.h", "probes/lib/tables.h", "probes/lib/tally.h", "probes/lib/who.h", "probes/runtimes/runtime.h"],
    "loaders/lib/protocols": ["schema/base/", "loaders/lib/protocols/"],
    "loaders/lib/runtimes": ["schema/base/", "schema/image/format.h", "loaders/lib/code/", "loaders/lib/runtimes/", "probes/runtimes/"],
    "loaders/lib/sandbox": ["schema/base/", "loaders/lib/sandbox/"],
    "loaders/replay": ["schema/base/", "schema/store/", "loaders/lib/protocols/conn.h", "loaders/replay/"],
    "loaders/index": ["schema/base/", "schema/image/", "loaders/index/", "loaders/lib/code/", "loaders/lib/sandbox/", "loaders/lib/host/maps/indexproto.h", "probes/lib/tables.h", "probes/runtimes/"],
    **{f"loaders/index/{room}": ["schema/base/", "schema/image/", f"loaders/index/{room}/", *(f"loaders/index/{r}/" for r in sees.split()),
                                 "loaders/lib/code/", "probes/lib/tables.h", "probes/runtimes/"]
       for room, sees in {"elf": "", "unwind": "elf", "code": "elf unwind", "lines": "elf unwind", "go": "elf unwind lines", "runtimes": "elf unwind"}.items()},
    **{f"loaders/lib/host/{room}": ["schema/", f"loaders/lib/host/{room}/", *(f"loaders/lib/host/{r}/" for r in sees.split()), "loaders/lib/runtimes/", "probes/",
                                    *(["loaders/lib/sandbox/"] if room == "names" else [])]
       for room, sees in {"budget": "", "secrets": "", "proc": "secrets", "unwind": "", "maps": "proc unwind", "names": "proc maps", "late": "maps names unwind"}.items()},
    "loaders/lib/code": ["schema/base/", "loaders/lib/code/"],
    "loaders/maps": ["schema/base/", "schema/image/", "loaders/maps/", "loaders/lib/", "probes/maps", "probes/lib/stack.h", "probes/lib/tables.h", "probes/runtimes/runtime.h"],
    "supervisor": ["schema/", "supervisor/", "loaders/lib/host/", "loaders/lib/sandbox/"],
    "tools": ["schema/base/", "schema/store/read/reader.h", "tools/"],
    "serve": ["schema/base/", "serve/"],
    "export": ["schema/base/", "schema/extension/extension.h", "schema/store/read/reader.h", "schema/store/files/", "schema/store/model/", "export/"],
    "export/push": ["schema/base/", "schema/extension/extension.h", "schema/store/read/reader.h", "schema/store/files/folder.h", "schema/store/model/kinds.h", "export/", "tools/select/select.h", "tools/fold/",
                    "tools/formats/pprof.h", "tools/print/reading.h", "tools/requests/traces.h"],
}
# the folders of the store: each includes itself and those before it; archiving and writing do not read (schema/store/README.md)
STORE = ["model", "packed", "files", "read", "retention"]
STORE_SEES = {room: STORE[:n + 1] for n, room in enumerate(STORE)} | {"archive": ["model", "packed", "files", "archive"],
                                                                     "write": ["model", "packed", "files", "retention", "write"]}
MAY |= {f"schema/store/{room}": ["schema/base/", "schema/facts/", "schema/sql/", *(f"schema/store/{r}/" for r in sees)] for room, sees in STORE_SEES.items()}
# the rooms of the query tool: each includes itself and those before it, so that there is no circle between rooms
TOOLS = ["print", "cli", "select", "requests", "net", "disk", "waits", "fold", "events", "logs", "timeline", "formats", "record", "processes", "diff", "explain", "page", "sql", "checks", "overview", "mcp", "verbs"]
READS = [f"schema/{h}" for h in ("base/", "families/", "facts/", "image/", "probespec/", "jfr/jfr.h", "sql/", "extension/", "store/model/", "store/files/folder.h", "store/files/migrate.h",
                                "store/read/days.h", "store/read/reader.h", "store/read/unreadable.h", "store/read/waits.h")]
MAY |= {f"tools/{room}": [*READS, *(f"tools/{r}/" for r in TOOLS[:n + 1])] for n, room in enumerate(TOOLS)}
# system headers of libraries -> the rooms that may know them
LIBRARIES = {
    r"bpf/|linux/bpf": ["probes", "loaders/lib/bpf", "loaders/maps", "loaders/pstack", "loaders/lib/sandbox", *(f"loaders/{family}" for family in families())],
    r"libelf|gelf|elfutils/|dwarf": ["loaders/index"],
    r"sqlite3": ["schema/sql", "schema/store", "schema/extension", "tools", "export"],
    r"jansson": ["tools", "loaders/maps", "loaders/lib/bpf", "loaders/lib/host", "loaders/symbolize", "loaders/import", "loaders/pstack", "loaders/replay", "supervisor", "serve", "export"],
    r"pcap": ["loaders/replay"],
    r"microhttpd": ["serve"],
    r"seccomp": ["loaders/lib/sandbox"],
    r"libiberty|demangle": ["loaders/index", "loaders/lib/host"],
}


def room_of(path):
    rooms = [r for r in MAY if path.startswith(r + "/")]
    if rooms:
        return max(rooms, key=len)
    return "/".join(path.split("/")[:2])


def allowed(room):
    if room in MAY:
        return MAY[room]
    family = room.split("/")[1]  # loaders/<family>
    return ["schema/", "loaders/lib/", f"loaders/{family}/", f"probes/{family}.", f"probes/{family}_", f"probes/{family}/", "probes/lib/stack.h"]


def includes(path):
    return re.findall(r'^\s*#\s*include\s+(["<])([^">]+)[">]', text(path), re.M)


@pytest.mark.parametrize("path", SOURCES)
def test_a_room_includes_only_what_stands_below_it(path):
    room = room_of(path)
    wrong = [name for kind, name in includes(path)
             if kind == '"' and not any(name.startswith(p) for p in allowed(room))]
    assert not wrong, f"{path} ({room}) includes {wrong}"


def test_every_quoted_include_is_written_from_the_root():
    wrong = []
    for path in SOURCES:
        for kind, name in includes(path):
            if kind == '"' and not any(os.path.exists(os.path.join(d, name)) for d in (ROOT, f"{BUILD}/gen")):
                wrong.append((path, name))
    assert not wrong


def test_libraries_are_known_only_to_their_rooms():
    wrong = []
    for path in SOURCES:
        for kind, name in includes(path):
            for library, rooms in LIBRARIES.items():
                if kind == "<" and re.match(library, name) and not any(room_of(path) == r or path.startswith(f"{r}/") for r in rooms):
                    wrong.append((path, name))
    assert not wrong


def test_nothing_includes_the_tests():
    assert not [(p, n) for p in SOURCES for _, n in includes(p) if n.startswith("tests/")]


def is_first_in_its_source(path):
    """Then the build, which has the same options and more warnings, is the proof."""
    source = path[:-2] + ".c"
    return os.path.exists(os.path.join(ROOT, source)) and next(iter(includes(source)), (None, ""))[1] == path


@pytest.mark.parametrize("path", [h for h in HEADERS if not h.startswith("probes/") and not is_first_in_its_source(h)])
def test_a_header_compiles_alone(path):
    done = run("gcc", "-std=gnu17", "-fsyntax-only", "-Wall", "-Wextra", "-D_GNU_SOURCE", "-I.", f"-I{BUILD}/gen", "-x", "c",
               path)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("path", [h for h in HEADERS if h.startswith("probes/")])
def test_a_header_of_the_probes_compiles_alone(path):
    """Both sides read the wire headers; what ends in .bpf.h and the kernel's types are for the BPF side, after kern.h."""
    read = text(path) + "".join(text(n) for _, n in includes(path) if n.startswith("probes/lib/arch"))
    bpf_side = path.endswith(".bpf.h") or "kern" in path or "__bpf__" not in read
    first = [] if path.endswith("/kern.h") else ["-include", "probes/lib/kern.h"]
    if bpf_side and "static_assert" not in text(path).lower():
        done = run("clang", "-fsyntax-only", "-target", "bpf", "-D__TARGET_ARCH_x86", "-g", "-O2", "-I.", *first, "-x", "c", path)
    else:
        done = run("gcc", "-std=gnu17", "-fsyntax-only", "-I.", "-include", "linux/types.h", "-x", "c", path)
    assert done.returncode == 0, done.stderr


def needed(name):
    return re.findall(r"\(NEEDED\).*\[([^]]+)\]", run("readelf", "-d", program(name)).stdout)


def test_the_query_tool_links_neither_libbpf_nor_libelf():
    done = run("ldd", program("sonde"))
    assert done.returncode == 0
    assert not re.search(r"libbpf|libelf|libdw|libseccomp|libmicrohttpd", done.stdout), done.stdout


def test_what_listens_on_the_network_opens_no_store():
    assert not [n for n in needed("sonde-serve") if "sqlite" in n or "bpf" in n or "elf" in n]


def functions(path):
    done = run("nm", "--defined-only", path)
    assert done.returncode == 0, done.stderr
    return set(re.findall(r" T (\w+)", done.stdout))


@pytest.mark.parametrize("name", ["sonde", "sonde-export", "sonde-push"])
def test_what_reads_a_store_has_nothing_that_writes_one(name):
    writes = set().union(*(functions(f"{BUILD}/obj/{f[:-2]}.o") for f in SOURCES if re.match(r"schema/store/(write|archive)/.*\.c$", f)))
    has = functions(program(name))
    assert "store_segment_open" in has and "store_writer_open" in writes
    assert not has & writes


def test_no_header_includes_itself_by_way_of_others():
    graph = {f: [n for _, n in includes(f) if n.endswith(".h")] for f in HEADERS}

    def reaches(start):
        seen, todo = set(), list(graph[start])
        while todo:
            one = todo.pop()
            if one not in seen:
                seen.add(one)
                todo += graph.get(one, [])
        return seen
    assert not [f for f in HEADERS if f in reaches(f)]


def test_only_sonde_index_may_link_the_elf_libraries_itself():
    assert not [n for n in needed("sonde-index") if "bpf" in n or "sqlite" in n]
    for name in ("sonde-cpu", "sonde-maps"):
        assert not [n for n in needed(name) if "libdw" in n], name


def test_no_kprobe_fentry_or_uretprobe_anywhere():
    """Decision 1 of the plan."""
    for path in [f for f in SOURCES if f.endswith(".bpf.c")]:
        sections = re.findall(r'SEC\("([^"]+)"\)', text(path))
        assert not [s for s in sections if re.match(r"(kprobe|kretprobe|fentry|fexit|uretprobe|ksyscall)", s)], path


def test_programs_at_tracepoints_stay_on_their_cpu():
    """Decision 0229: all but those under a run queue's lock, and the two of cpu and mem, which keep nothing by CPU."""
    plain = {"sched_switch", "sched_waking", "sched_wakeup_new", "sched_exit_tp"}  # the last turns preemption off itself
    pids = {"sched_process_fork", "sched_process_exit"}
    for path in [f for f in SOURCES if ".bpf." in f]:
        allowed = plain | (pids if path in ("probes/cpu.bpf.c", "probes/mem.bpf.c") else set())
        assert set(re.findall(r'SEC\("\??(?:tp_btf|raw_tp)/(\w+)"\)', text(path))) <= allowed, path


def test_bpf_map_names_fit_the_kernel():
    for path in [f for f in SOURCES if f.startswith("probes/")]:
        long = [m for m in re.findall(r"\}\s*(\w+)\s+SEC\(\".maps\"\)", text(path)) if len(m) > 15]
        assert not long, path
