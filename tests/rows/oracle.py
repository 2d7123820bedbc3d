# SPDX-License-Identifier: Apache-2.0
"""oracle: the unwind rows that a file should have, by what readelf says of its call-frame information.

readelf -wF gives each row's CFA, RBP, RBX and return address; where it says `exp`, readelf -wf gives the operands. The rules
by which they become rows are those of loaders/index/unwind/cfirule.h and rows.h, told a second time, in the words of
`sonde-index --dump-rows` (loaders/index/unwind/rowprint.h).
"""
import re
import subprocess

PADDING = 15
FEW = 8  # FDEs: with fewer in .eh_frame, .debug_frame counts too

PLT = re.compile(r"DW_OP_breg7 \(rsp\): 8; DW_OP_breg16 \(rip\): 0; DW_OP_lit15; DW_OP_and; DW_OP_lit(\d+); DW_OP_ge; "
                 r"DW_OP_lit3; DW_OP_shl; DW_OP_plus$")
BREG = r"DW_OP_breg\d+ \((\w+)\): (-?\d+)"
SUM = re.compile(BREG + r"(?:; DW_OP_plus_uconst: (\d+))?$")
DEREF = re.compile(BREG + r"; DW_OP_deref(?:; DW_OP_plus_uconst: (\d+)|; DW_OP_lit(\d+); DW_OP_plus)?$")
INDEX = re.compile(BREG + r"; " + BREG + r"; (?:DW_OP_lit8; DW_OP_mul|DW_OP_lit3; DW_OP_shl); DW_OP_plus; DW_OP_deref"
                   r"(?:; DW_OP_plus_uconst: (\d+))?$")
# the sum put together in the other order
INDEX2 = re.compile(BREG + r"; (?:DW_OP_lit8; DW_OP_mul|DW_OP_lit3; DW_OP_shl); " + BREG + r"; DW_OP_plus; DW_OP_deref(?:; DW_OP_plus_uconst: (\d+))?$")


class Fde:
    __slots__ = ("lo", "hi", "rows", "signal", "at")

    def __init__(self, lo, hi, rows, signal, at):
        self.lo, self.hi, self.rows, self.signal, self.at = lo, hi, rows, signal, at


def lines_of(command):
    p = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, errors="replace")
    yield from p.stdout
    p.stdout.close()
    p.wait()


def section_of(line):
    found = re.match(r"Contents of the (\S+) section", line)
    return found.group(1) if found else None


def frames(path):
    """{section: [Fde]}; a row is (address, CFA, RBP, RSP, return address, RBX), in readelf's words."""
    found, cies = {}, {}
    section = columns = owner = None
    for line in lines_of(["readelf", "-wFN", path]):
        if line[:2] == "00" and line[16:17] == " " and columns:
            t = (re.sub(r"r\d+ \((\w+)\)", r" \1 ", line) if "(" in line else line).split()
            if len(t) == len(columns["all"]):
                i = columns
                owner.rows.append((int(t[0], 16), t[1], t[i["rbp"]] if i["rbp"] else "u", t[i["rsp"]] if i["rsp"] else "u",
                                   t[i["ra"]] if i["ra"] else "u", t[i["rbx"]] if i["rbx"] else "u"))
                continue
        if line[:7] == "   LOC ":
            t = line.split()
            columns = {"all": t, **{n: t.index(n) if n in t else 0 for n in ("rbp", "rsp", "ra", "rbx")}}
        elif " FDE " in line:
            m = re.match(r"([0-9a-f]+) [0-9a-f]+ [0-9a-f]+ FDE cie=([0-9a-f]+) pc=([0-9a-f]+)\.\.([0-9a-f]+)", line)
            columns = None
            if m:
                cie = cies.get((section, int(m.group(2), 16)))
                owner = Fde(int(m.group(3), 16), int(m.group(4), 16), [], cie.signal if cie else False, int(m.group(1), 16))
                owner.at = (owner.at, cie)
                found[section].append(owner)
        elif " CIE " in line:
            m = re.match(r'([0-9a-f]+) [0-9a-f]+ [0-9a-f]+ CIE "([^"]*)"', line)
            columns = None
            if m:
                owner = Fde(0, 0, [], "S" in m.group(2), int(m.group(1), 16))
                cies[section, owner.at] = owner
        elif section_of(line):
            section = section_of(line)
            found.setdefault(section, [])
    for fdes in found.values():
        for f in fdes:
            f.at, cie = f.at
            if not f.rows and cie and cie.rows:
                f.rows = [(f.lo, *cie.rows[-1][1:])]
    return found


def expressions(path):
    """{(section, FDE's place, address): [CFA's expression, RBP's]} where either has a rule."""
    found = {}
    section = where = None
    state, stack, at = [None, None], [], 0

    def note():
        if where is not None and (state[0] or state[1]):
            found[section, where, at] = list(state)

    for line in lines_of(["readelf", "-wfN", path]):
        if line[:2] != "  ":
            note()
            m = re.match(r"([0-9a-f]+) [0-9a-f]+ [0-9a-f]+ (?:FDE cie=\S+ pc=([0-9a-f]+)|CIE)", line)
            if m:
                where = int(m.group(1), 16) if m.group(2) else None
                at = int(m.group(2), 16) if m.group(2) else 0
                state, stack = [None, None], []
            elif section_of(line):
                section, where = section_of(line), None
            continue
        m = re.match(r"  DW_CFA_(\w+):?\s*(.*)", line)
        if not m:
            continue
        op, rest = m.groups()
        if op.startswith(("advance_loc", "set_loc")):
            to = re.search(r"to ([0-9a-f]+)$", rest) or re.search(r"([0-9a-f]+)$", rest)
            if int(to.group(1), 16) != at:
                note()
            at = int(to.group(1), 16)
        elif op == "def_cfa_expression":
            state[0] = rest.strip()[1:-1]
        elif op in ("def_cfa", "def_cfa_register", "def_cfa_sf"):
            state[0] = None
        elif op == "expression" and "r6 " in rest:
            state[1] = rest[rest.index(")") + 1:].strip()[1:-1]
        elif op == "remember_state":
            stack.append(list(state))
        elif op == "restore_state" and stack:
            state = stack.pop()
        elif re.match(r"r6 ", rest):
            state[1] = None
    note()
    return found


def signed(n):
    return f"{n:+d}"


def cfa_of_expression(text):
    """(the CFA in our words, a plain sum's parts)"""
    text = text.removesuffix("; DW_OP_nop")
    m = PLT.match(text)
    if m:
        return f"plt:{m.group(1)}", None
    m = SUM.match(text)
    if m:
        offset = int(m.group(2)) + int(m.group(3) or 0)
        return f"{m.group(1)}{signed(offset)}", (m.group(1), offset)
    m = DEREF.match(text)
    if m:
        return f"*({m.group(1)}{signed(int(m.group(2)))}){signed(int(m.group(3) or m.group(4) or 0))}", None
    m = INDEX.match(text)
    if m:
        a = int(m.group(2)) + 8 * int(m.group(4))
        return f"*({m.group(1)}+8*{m.group(3)}{signed(a)}){signed(int(m.group(5) or 0))}", None
    m = INDEX2.match(text)
    if m:
        a = int(m.group(4)) + 8 * int(m.group(2))
        return f"*({m.group(3)}+8*{m.group(1)}{signed(a)}){signed(int(m.group(5) or 0))}", None
    return "unsupported:cfa-expression", None


def rbp_of_expression(text):
    m = re.match(r"(?:DW_OP_call_frame_cfa; )?DW_OP_plus_uconst: (\d+)$", text)
    if m:  # the CFA lies on the stack when it begins
        return f"c{signed(int(m.group(1)))}"
    m = SUM.match(text)
    if m and m.group(1) in ("rbp", "rsp"):
        return f"[{m.group(1)}{signed(int(m.group(2)) + int(m.group(3) or 0))}]"
    return "lost"


def rbp_of(said, expression, sum_):
    if said in ("u", "s"):
        return "same"
    if said == "exp":
        return rbp_of_expression(expression or "")
    m = re.match(r"c([+-]\d+)$", said)
    if m:
        n = int(m.group(1))
        if sum_ and sum_[0] == "rsp" and (n >= 0 or n < -sum_[1]):
            return "same"  # below the top of the stack: popped already
        return f"c{signed(n)}" if n else "c-0"
    return "same" if said == "rbp" else "lost"


def rbx_of(said, sum_):
    """What follows the return address."""
    if said == "exp":
        return " rbx=lost"
    place = rbp_of("rbp" if said == "rbx" else said, None, sum_)
    if place == "same":
        return ""
    n = int(place[1:]) if place[0] == "c" else 1
    return f" rbx={place}" if n <= 0 and n % 8 == 0 and n >= -8 * 4095 else " rbx=lost"


def words(row, expression):
    """One row in our words."""
    _, cfa, rbp, rsp, ra, rbx = row
    if ra == "u":
        return "root"
    if rsp not in ("u", "v+0"):
        return "unsupported:cfa-register"
    m = re.match(r"(\w+?)([+-]\d+)$", cfa)
    sum_ = (m.group(1), int(m.group(2))) if m else None
    in_register = re.match(r"r\w+$", ra)
    if not in_register and ra != "c-8":
        return "unsupported:return-address"
    if cfa == "exp":
        if in_register:
            return "unsupported:return-address"
        cfa, sum_ = cfa_of_expression((expression or [""])[0] or "")
        if cfa.startswith(("plt", "unsupported")):
            return cfa
    elif sum_ and sum_[0] == "rsp" and sum_[1] < 8 and not in_register:
        return "root"
    return f"{cfa} {rbp_of(rbp, expression and expression[1], sum_)} {ra}{rbx_of(rbx, sum_)}"


def overlay(better, worse):
    """The spans (lo, hi, rows) of `worse` that lie between those of `better`, and these; both sorted and disjoint."""
    out, i = [], 0
    for lo, hi, rows in worse:
        while i < len(better) and better[i][1] <= lo:
            i += 1
        k = i
        while lo < hi and k < len(better) and better[k][0] < hi:
            if better[k][0] > lo:
                out.append((lo, better[k][0], rows))
            lo = max(lo, better[k][1])
            k += 1
        if lo < hi:
            out.append((lo, hi, rows))
    return sorted(better + out, key=lambda s: s[0])


def spans_of(fdes, section, code, known):
    spans = []
    for f in fdes:
        if not f.lo or f.hi <= f.lo or not any(a <= f.lo and f.hi <= b for a, b in code):
            continue
        if f.signal:
            spans.append((f.lo - 1, f.hi, [(f.lo - 1, "signal")]))
            continue
        rows = {}
        for row in f.rows:
            if f.lo <= row[0] < f.hi:
                rows[row[0]] = words(row, known.get((section, f.at, row[0])) if "exp" in row[1:3] else None)
        if rows:
            spans.append((f.lo, f.hi, sorted(rows.items())))
    spans.sort(key=lambda s: s[0])  # stable: the first given stays
    out = []
    for s in spans:
        if out and out[-1][0] == s[0]:
            continue
        if out and out[-1][1] > s[0]:
            out[-1] = (out[-1][0], s[0], out[-1][2])
        out.append(s)
    return out


def code_of(path):
    code = []
    for line in lines_of(["readelf", "-lW", path]):
        m = re.match(r"\s+LOAD\s+\S+ (\S+) \S+ \S+ (\S+) (.{3}) ", line)
        if m and "E" in m.group(3):
            code.append((int(m.group(1), 16), int(m.group(1), 16) + int(m.group(2), 16)))
    return code


def table(path):
    """([(address, rule in our words)] where the rule changes, [(lo, hi)] that some FDE describes, rows before merging)."""
    found = frames(path)
    wanted = {s: f for s, f in found.items() if s == ".eh_frame"}
    if len(wanted.get(".eh_frame", [])) < FEW:
        wanted.update({s: f for s, f in found.items() if s in (".debug_frame", ".zdebug_frame")})
    has_expression = any("exp" in row[1:3] for fdes in wanted.values() for f in fdes for row in f.rows)
    known = expressions(path) if has_expression else {}
    code, spans = code_of(path), []
    for section, fdes in sorted(wanted.items(), reverse=True):
        spans = overlay(spans, spans_of(fdes, section, code, known))
    out, raw = [], 0
    for i, (lo, hi, rows) in enumerate(spans):
        raw += len(rows)
        inside = [r for r in rows if r[0] < hi]
        before = [r for r in inside if r[0] <= lo]
        for addr, rule in ([(lo, before[-1][1])] if before else []) + [r for r in inside if r[0] > lo]:
            if not out or out[-1][1] != rule:
                out.append((addr, rule))
        if i + 1 == len(spans) or spans[i + 1][0] - hi > PADDING:
            out.append((hi, "none"))
    return out, [(lo, hi) for lo, hi, _ in spans], raw
