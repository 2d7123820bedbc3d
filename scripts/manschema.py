# SPDX-License-Identifier: Apache-2.0
"""manschema: generates sonde-schema(7) from docs/SCHEMA.md (the views, which tests compare) and from the comments in the
store's migrations (the tables)."""
import glob
import os
import re
import sqlite3

from mdoc import literal, plain

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
HEAD = """\
.Dd November 21, 2026
.Dt SONDE-SCHEMA 7
.Os
.Sh NAME
.Nm sonde-schema
.Nd the store of sonde, as SQL sees it
.Sh DESCRIPTION
"""
TAIL = """\
.Sh SEE ALSO
.Xr sonde 1 ,
.Xr sonde-sql 1 ,
.Xr sqlite3 1
"""


def unmarked(text):
    """Markdown without its marks, links as their text."""
    text = re.sub(r"\[([^]]+)\]\([^)]*\)", r"\1", text)
    text = re.sub(r"\*\*(.+?)\*\*", r"\1", text).replace("`", "").replace("\\|", "|")
    return re.sub(r" +", " ", text).strip()


def words(text):
    return plain(unmarked(text))


def sentences(lines):
    """A paragraph, one sentence per line."""
    text = unmarked(" ".join(lines))
    return "".join(plain(x) + "\n" for x in re.split(r"(?<=[.?])\s+(?=\S)|(?<=:)\s+(?=[A-Z])", text) if x.strip())


def table(lines):
    out = ".Bl -tag -width Ds\n"
    for line in lines[2:]:
        name, text = [c.strip() for c in re.split(r"(?<!\\)\|", line.strip())[1:3]]
        out += f".It {words(name)}\n{sentences([text]) or '-'}"
    return out + ".El\n"


def groups(text):
    """Paragraphs, tables and blocks of code, each as a list of lines."""
    out, fence = [[]], False
    for line in text.splitlines():
        if line.startswith("```"):
            fence = not fence
            out.append([line] if fence else [])
        elif not fence and (not line.strip() or line.startswith("#")):
            out += [[line], []] if line.startswith("#") else [[]]
        else:
            out[-1].append(line)
    return [g for g in out if g]


def from_markdown(text):
    out, begun = "", False
    for group in groups(text):
        first = group[0]
        if first.startswith("# "):
            continue
        if first.startswith("#"):
            level, title = first.split(" ", 1)
            out += f".{'Sh' if level == '##' else 'Ss'} {words(title).upper() if level == '##' else words(title)}\n"
            begun = False
            continue
        if first.startswith("```"):
            out += literal(group[1:])
        elif first.startswith("|"):
            out += table(group)
        elif first.startswith("    "):
            out += literal(x[4:] for x in group)
        elif first.startswith("- "):
            bullets = re.split(r"^- ", "\n".join(group), flags=re.M)[1:]
            out += ".Bl -bullet\n" + "".join(f".It\n{sentences(b.split(chr(10)))}" for b in bullets) + ".El\n"
        else:
            out += (".Pp\n" if begun else "") + sentences(group)
        begun = True
    return out


def tables():
    """Every table with its columns, from the comments of the migrations."""
    db = sqlite3.connect(":memory:")
    for path in sorted(glob.glob(os.path.join(ROOT, "schema", "sql", "[0-9]*.sql"))):
        with open(path, encoding="utf-8") as f:
            db.executescript(f.read())
    out = ""
    for name, text in db.execute("SELECT name, sql FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite_%' "
                                 "ORDER BY rowid"):
        first, *rest = text.splitlines()
        out += f".Ss Table {name}\n" + words(first.split("--", 1)[1].strip() if "--" in first else name).capitalize() + ".\n"
        columns = [re.match(r"\s+(\w+) [A-Z]+[^-]*--\s*(.+)", line) for line in rest]
        out += ".Bl -tag -width Ds\n" + "".join(f".It {c[1]}\n{sentences([c[2]])}" for c in columns if c) + ".El\n"
    db.close()
    return out


def schema_page():
    with open(os.path.join(ROOT, "docs", "SCHEMA.md"), encoding="utf-8") as f:
        text = f.read()
    return HEAD + from_markdown(text) + ".Sh TABLES AND THEIR COLUMNS\n" + tables() + TAIL
