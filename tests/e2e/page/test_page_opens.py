# SPDX-License-Identifier: Apache-2.0
"""How the page opens: grouped by container and process, with the graph on the first screen, the start of programs folded, idle
waits hidden and counted; waits stand in the time in which they were; pictures are as wide as asked. On stores of known
contents."""
import json
import os
import re
import subprocess
import xml.etree.ElementTree as ET

import pytest
from browser import ROW, page, pages  # noqa: F401
from conftest import BUILD, ROOT, need

AT = 1795144200  # 2026-11-20T03:10:00Z
RANGE = ("--from", AT, "--to", AT + 60)
START = ["_start", "__libc_start_main", "__libc_start_call_main"]
WEB, DB = {"comm": "nginx", "container": "web"}, {"pid": 900, "comm": "postgres", "container": "db"}
IDLE_S, WORK_S = 540, 60


def put(path, lines):
    program = os.path.join(BUILD, "tests", "putstore")
    need("build/tests/putstore", program)
    subprocess.run([program, path], input="".join(json.dumps(x) + "\n" for x in lines), text=True, check=True)
    return path


@pytest.fixture(scope="module")
def made(sonde, tmp_path_factory):
    """A minute: web has two processes of one name, db one, the host two; of 100 samples 60, 20 and 20."""
    cpu = lambda n, stack, **who: {"kind": "cpu", "at": AT + 30, "n": n, "stack": stack, **who}  # noqa: E731
    folder = tmp_path_factory.mktemp("opens")
    store = put(str(folder / "store"), [
        {"run": "cpu", "from": AT - 60, "to": AT + 60, "bucket_s": 10, "period_ns": 10**7},
        *({**cpu(n, [*START, "main", name], **who), "at": AT - 30} for n, name, who in (
            (50, "serve", {**WEB, "pid": 800}), (20, "query", DB), (15, "loop", {"pid": 70, "comm": "cron"}))),
        cpu(30, [*START, "main", "serve"], pid=812, **WEB), cpu(20, [*START, "main", "serve"], pid=813, **WEB),
        cpu(7, ["clone3", "start_thread", "worker"], pid=813, **WEB), cpu(3, START, pid=812, **WEB),
        cpu(20, [*START, "main", "query"], **DB),
        cpu(15, ["nginx+0x10", *START[1:], "main", "loop"], pid=70, comm="cron"), cpu(5, ["main", "_start"], pid=71, comm="nginx"),
        {"run": "offcpu", "from": AT, "to": AT + 60, "bucket_s": 10},
        *({"wait": 5, "flags": 0, "at": AT + 55, "n": 1, "total_ns": 60 * 10**9, "max_ns": 60 * 10**9, **WEB, "pid": 812, "tid": t,
           "thread": "io"} for t in range(IDLE_S // 60)),
        {"wait": 1, "flags": 0, "at": AT + 55, "n": 1, "total_ns": WORK_S * 10**9, "max_ns": WORK_S * 10**9, **DB, "tid": 9, "thread": "pg"},
        {"kind": "offcpu", "at": AT + 55, "label": 5, "n": 9, "value": 9 * 10**9, **WEB, "pid": 812, "tid": 1, "thread": "io",
         "stack": [*START, "main", "loop", "epoll_wait"]},
        {"kind": "offcpu", "at": AT + 55, "label": 1, "n": 1, "value": 10**9, **DB, "tid": 9, "thread": "pg",
         "stack": [*START, "main", "lock", "futex_wait"]}])
    pages = {}
    for name, args in (("cpu", ["flame", "--type", "cpu"]), ("wall", ["flame", "--type", "wall"]), ("all", ["flame"]), ("report", ["report"]),
                       ("offcpu", ["flame", "--type", "offcpu"]), ("diff", ["diff", "--baseline", "60s", "--type", "cpu"])):
        pages[name] = str(folder / f"{name}.html")
        sonde(*args, "-q", *RANGE, "-o", pages[name], store=store, check=True)
    return store, pages


def names_of_row(page, row, steps=40):
    """From left to right, what the pointer reads in a row of the graph."""
    width, out = page.canvas()["width"], []
    for i in range(steps):
        tip = page.point((i + 0.5) * width / steps, row * ROW + ROW / 2)
        if not out or (tip and tip[0]) != out[-1]:
            out.append(tip and tip[0])
    return out


def tip_at(page, share, row):
    return page.point(share * page.canvas()["width"], row * ROW + ROW / 2)


# --- groups ---

def test_containers_stand_first_then_their_commands(page, made):
    page.open(made[1]["cpu"])
    assert page.js("return document.getElementById('group').value") == "nested"
    assert names_of_row(page, 1) == ["web", "[host]", "db"] or names_of_row(page, 1) == ["web", "db", "[host]"]
    row = names_of_row(page, 2)
    assert row[0] == "nginx (2 processes)" and {"cron (70)", "nginx (71)", "postgres (900)"} <= set(row)
    assert names_of_row(page, 3)[0] == "main"
    assert page.js("return [...document.querySelectorAll('#who li')].map((x) => x.textContent)")[0] == "web"
    assert page.text("#who").count("[host]") == 1 and "db" in page.text("#who")


@pytest.mark.page
def test_where_nothing_ran_in_a_container_there_is_no_row_of_containers(page, sonde, made, tmp_path):
    sonde("flame", "-q", "--type", "cpu", "--comm", "cron", *RANGE, "-o", tmp_path / "x.html", store=made[0], check=True)
    page.open(tmp_path / "x.html")
    assert [names_of_row(page, row, 5) for row in (1, 2)] == [["cron (70)"], ["main"]]


@pytest.mark.page
@pytest.mark.parametrize("group, first", [("none", "main"), ("process", "nginx (812)"), ("container", "web")])
def test_an_asked_for_group_is_the_first_row(page, sonde, made, tmp_path, group, first):
    sonde("flame", "-q", "--type", "cpu", "--group", group, *RANGE, "-o", tmp_path / "x.html", store=made[0], check=True)
    page.open(tmp_path / "x.html")
    assert page.js("return document.getElementById('group').value") == group
    assert tip_at(page, 0.01, 1)[0] == first


@pytest.mark.page
def test_the_tip_names_process_and_container_in_every_group(page, made):
    page.open(made[1]["cpu"])
    assert "processnginx (2 processes) in web" in tip_at(page, 0.01, 3)[1]
    page.do("select", css="#group", value="process")
    assert "processnginx (812) in web" in tip_at(page, 0.01, 2)[1]
    page.do("select", css="#group", value="none")
    told = tip_at(page, 0.01, 1)
    assert told[0] == "main" and "processnginx (2 processes) in web 90.9 %, nginx (71) on the host 9.09 %" in told[1]
    page.do("select", css="#group", value="container")
    assert "processnginx (2 processes) in web" in tip_at(page, 0.01, 2)[1] and "%" not in tip_at(page, 0.01, 2)[1].split("total")[0]
    page.do("select", css="#group", value="none")
    page.keys("r")  # leaves first: serve is web's alone
    told = tip_at(page, 0.01, 1)
    assert told[0] == "serve" and "processnginx (2 processes) in web" in told[1]


@pytest.mark.page
def test_a_difference_groups_by_command(page, made):
    page.open(made[1]["diff"])
    assert {"web", "db", "[host]"} == set(names_of_row(page, 1))
    assert "nginx" in names_of_row(page, 2) and "processnginx in web" in tip_at(page, 0.01, 3)[1]


def test_the_drawing_of_a_report_is_by_container_and_command(made):
    text = open(made[1]["report"], encoding="utf-8").read()
    legend = re.search(r'<ul class="legend">(.*?)</ul>', text).group(1)
    assert re.findall(r"</i>([^<]*)</li>", legend)[:2] == ["web", "db"] and "cron" in legend and "(812)" not in legend


# --- the start of programs ---

def self_by_name(page):
    """name -> percent, over the files."""
    sums = {}
    for name, share in page.js("return [...document.querySelectorAll('#rows tr')].map((r) => [r.cells[4].textContent, r.cells[0].textContent])"):
        sums[name] = sums.get(name, 0) + float(share.split()[0])
    return sums


def test_the_start_of_a_program_is_folded_and_no_time_is_lost(page, made):
    page.open(made[1]["cpu"], "#group=none")
    row = names_of_row(page, 1)
    assert row[0] == "main" and {"worker", "__libc_start_call_main"} <= set(row) and not {"_start", "clone3"} & set(row)
    shown = self_by_name(page)
    assert sum(shown.values()) == pytest.approx(100, abs=0.1)
    assert shown["__libc_start_call_main"] == 3 and "start_thread" not in shown and shown["_start"] == 5
    page.keys("a")
    assert tip_at(page, 0.01, 1)[0] == "_start" and "start=0" in page.do("url")
    shown = self_by_name(page)
    assert sum(shown.values()) == pytest.approx(100, abs=0.1)
    assert shown["start_thread"] == 0 and shown["__libc_start_main"] == 0
    page.press("#start")
    assert tip_at(page, 0.01, 1)[0] == "main"


@pytest.mark.page
def test_only_the_root_of_a_stack_is_the_start_of_a_program(page, made):
    """`_start` below main is a function like any other; an unnamed caller of __libc_start_main is not."""
    page.open(made[1]["cpu"])
    page.do("fill", css="#search", value="^_start$")
    page.until("return document.getElementById('hits').textContent !== ''")
    assert page.text("#hits") == "1 function, 5.00 %"
    page.do("fill", css="#search", value="0x10")
    page.until("return document.getElementById('hits').textContent === 'nothing matches'")


def scripts(*names):
    return "".join(open(os.path.join(ROOT, "tools", "page", "script", n + ".js"), encoding="utf-8").read() for n in names)


def test_entries_of_languages_are_known_and_nothing_of_a_program(page):
    page.do("open", url="about:blank", wait=False)
    yes = ["_start", "__libc_start_main@@GLIBC_2.34", "__libc_start_main_impl", "__libc_start_call_main", "__clone3", "clone3", "__clone", "start_thread",
           "ret_from_fork_asm", "kthread", "Py_BytesMain", "pymain_run_python", "Py_RunMain", "_PyRun_SimpleFileObject", "runtime.goexit",
           "runtime.main", "std::rt::lang_start::{{closure}}", "execute_native_thread_routine", "node::Start(int, char**)", "JavaMain"]
    no = ["main", "start_server", "_start_io", "clone_repository", "PyRun_Something", "runtime.mallocgc", "kthread_work", "node::StartUp", "start_threads",
          "my_start", "std::rt::lang_start_of_mine", "main.main"]
    told = page.js(scripts("looks") + "return arguments[0].map((name) => looksIsStart({name: [name]}, 0));", yes + no)
    assert [n for n, t in zip(yes + no, told) if t] == yes


# --- idle ---

def test_idle_waits_are_hidden_and_said(page, made):
    page.open(made[1]["wall"])
    assert "Idle waits are hidden: 9 min of 10 min 1 s (89.9 %)" in page.text("#idle-line") or re.search(
        r"hidden: 9 min of 10 min(?: [12] s)? \((89\.\d|90\.0) %\)", page.text("#idle-line")), page.text("#idle-line")
    assert "[idle: poll]" not in page.text("#rows") and "[waits: lock]" in page.text("#rows")
    page.press("#idle-show")
    assert "[idle: poll]" in page.text("#rows") and "Idle waits are shown: 9 min" in page.text("#idle-line") and "idle=1" in page.do("url")
    page.keys("w")
    assert "[idle: poll]" not in page.text("#rows")
    page.open(made[1]["offcpu"])
    assert "Idle waits are hidden: 9 s of 10 s (90.0 %)" in page.text("#idle-line"), page.text("#idle-line")
    assert "db" in names_of_row(page, 1) and "web" not in names_of_row(page, 1)
    assert names_of_row(page, 3)[0] == "[waits: lock]" and names_of_row(page, 4)[0] == "main"
    page.open(made[1]["cpu"])
    assert page.js("return document.getElementById('idle-line').hidden")


# --- waits over time ---

def strip_tops(page, tmp_path):
    """How high the strip is filled at the middle of each of six slots, in pixels."""
    from browser import png_read
    width, height, rows = png_read(page.shot(tmp_path / "strip.png", "#strip"))
    paper = rows[3][width // 2]
    return [sum(rows[y][int((i + 0.4) * width / 6)] != paper for y in range(14, height - 1)) for i in range(6)]


@pytest.mark.page
def test_the_strip_of_wall_time_is_no_comb(page, made, tmp_path):
    """Ten threads waited for the whole minute; all of it is stored with the last bucket of ten seconds."""
    page.open(made[1]["wall"], "#idle=1")
    assert page.js("return document.getElementById('from').max") == "5"  # six buckets, not sixty slots
    tops = strip_tops(page, tmp_path)
    assert max(tops) - min(tops) <= 0.15 * max(tops) and min(tops) > 30, tops
    box = page.box("#strip")  # a range has its part of each thread
    page.do("drag", x=box["x"] + box["width"] * 0.2, y=box["y"] + 40, x2=box["x"] + box["width"] * 0.45, y2=box["y"] + 40)
    page.settle()
    assert "Idle waits are shown: 3 min" in page.text("#idle-line"), page.text("#idle-line")


def test_spread_waits_keep_every_sum(page):
    """Of made-up rows: sums by node and thread stay, no thread has more than a slot holds, and order by node stays."""
    page.do("open", url="about:blank", wait=False)
    told = page.js(scripts("spread") + """
        let state = 7;
        const dice = (n) => (state = (state * 1103515245 + 12345) % 2147483648) % n;
        const owners = 40, slots = 12, list = [];
        for (let node = 1; node < 300; node++)
            for (let k = dice(4); k > 0; k--)
                list.push([node, dice(owners), dice(slots), 1, dice(3) ? dice(200) : dice(4000)]);
        const column = (i, array) => array.from(list, (x) => x[i]);
        const rows = {n: list.length, node: column(0, Uint32Array), owner: column(1, Uint32Array), slot: column(2, Uint16Array),
            count: column(3, Float64Array), value: column(4, Float64Array)};
        const p = {type: 'wall', value_unit: 'ns', slots, covered_ns: new Array(slots).fill(1000), owners: new Array(owners), sides: [rows]};
        p.covered_ns[4] = 0;
        const sums = (key) => { const m = {}; for (let r = 0; r < rows.n; r++) m[key(r)] = (m[key(r)] || 0) + rows.value[r]; return m; };
        const by = () => [sums((r) => rows.node[r] + ' ' + rows.owner[r]), rows.count.reduce((a, b) => a + b, 0)];
        const before = by(), had = sums((r) => rows.owner[r]);
        spreadWaits(p);
        const after = by(), now = sums((r) => rows.owner[r] + ' ' + rows.slot[r]);
        let worst = 0, order = true;
        for (const [k, v] of Object.entries(now)) {
            const [owner, slot] = k.split(' ').map(Number);
            if (had[owner] <= 3000)
                worst = Math.max(worst, slot && v / 1000);
        }
        for (let r = 1; r < rows.n; r++)
            order = order && rows.node[r] >= rows.node[r - 1];
        const off = Object.keys(before[0]).reduce((m, k) => Math.max(m, Math.abs(before[0][k] - after[0][k])), 0);
        const gap = Object.entries(now).filter(([k, v]) => k.endsWith(' 4') && v > 1e-6).length;
        return {off, counts: before[1] === after[1], worst, order, gap, more: rows.n > list.length};""")
    assert told["off"] < 1e-6 and told["counts"] and told["order"] and told["more"] and told["gap"] == 0


# --- the first screen ---

@pytest.mark.page
@pytest.mark.parametrize("kind, wide, phone", [("cpu", 300, 330), ("wall", 330, 400), ("all", 340, 400), ("report", 580, 640), ("diff", 460, 600)])
def test_the_graph_is_on_the_first_screen(page, made, kind, wide, phone):
    for width, height, most in ((1280, 800, wide), (390, 844, phone)):
        page.start(width, height)
        page.open(made[1][kind])
        page.settle()
        at = page.canvas()
        assert at["y"] <= most and at["y"] + 5 * ROW <= height, (width, at)
        assert page.js("return document.documentElement.scrollWidth <= innerWidth")
        assert page.box("#about summary")["height"] <= 30 and not page.js("return document.getElementById('facts').checkVisibility()")
        page.press("#about summary")
        assert page.js("return document.getElementById('facts').checkVisibility()") and page.box("#facts")["height"] > 20
    page.start()


@pytest.mark.page
def test_the_line_above_says_what_matters(page, made):
    page.open(made[1]["cpu"])
    assert re.search(r"0\.02 of \d+ cores · 100 samples$", page.text("#about summary").strip())
    assert "lost" not in page.text("#about summary") and "0 lost" in page.text("#facts")
    page.open(made[1]["diff"])
    assert "functions changed by more than noise" in page.text("#about summary")


def test_all_that_is_not_data_stays_below_60_KB(made):
    text = open(made[1]["cpu"], encoding="utf-8").read()
    data = re.search(r'id="data">([^<]*)<', text).group(1)
    assert len(text.encode()) - len(data) < 61440 + 3000  # the head and the plain table of this page


def test_what_has_no_name_is_told_by_file(page, pages, made):
    """Of tests/unit/tools/fold/fold_sample.h: ten samples of 75, in one file; and a store whose names are all known."""
    page.open(pages())
    assert "13.3 % is in functions without a name, all of it in libc.so.6: the file has no symbols" in page.text("#facts")
    assert "4 lost" in page.text("#about summary b:last-child")
    page.open(made[1]["cpu"])
    assert "every function has a name" in page.text("#facts")


# --- pictures ---

@pytest.mark.parametrize("verb", ["flame", "diff"])
def test_a_picture_is_as_wide_as_asked(sonde, made, tmp_path, verb):
    args = [verb, "-q", "--type", "cpu", *RANGE, *(["--baseline", "60s"] if verb == "diff" else [])]
    for width in (None, 640, 3000):
        sonde(*args, *(["--width", width] if width else []), "-o", tmp_path / "x.svg", store=made[0], check=True)
        svg = ET.parse(tmp_path / "x.svg").getroot()
        frames = [r for r in svg.iter("{http://www.w3.org/2000/svg}rect") if r.get("x")]
        assert int(svg.get("width")) == (width or 1200) and svg.get("viewBox").split()[2] == svg.get("width")
        assert max(float(r.get("x")) + float(r.get("width")) for r in frames) == pytest.approx(width or 1200, abs=1)
    for width, name, say in ((199, "x.svg", "200 to 20000"), (20001, "x.svg", "20001"), (800, "x.html", "--width applies only to .svg")):
        done = sonde(*args, "--width", width, "-o", tmp_path / name, store=made[0])
        assert done.returncode == 2 and say in done.stderr and "fix:" in done.stderr


@pytest.mark.page
def test_a_saved_picture_is_as_wide_as_the_view(page, made, tmp_path):
    page.start(1920, 900)
    page.open(made[1]["cpu"])
    page.keys("e")
    page.do("download", path=str(tmp_path / "x.svg"))
    assert int(ET.parse(tmp_path / "x.svg").getroot().get("width")) == pytest.approx(page.canvas()["width"], abs=1) and page.canvas()["width"] > 1800
    page.start()
