#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""manpages: updates the generated parts of the man pages: for each verb the synopsis, the names of its options and the
examples, from the program's table (`sonde help --json`); the keys of sonde.conf(5), from `sonded --show-config --origin`;
sonde-schema(7), from docs/SCHEMA.md and the comments of schema/sql. The author writes the text of an option, which stays; an
option without text gets its help line. A verb without a page gets one.

  scripts/manpages.py            print which pages would change; exit 1 if any (a test does this)
  scripts/manpages.py --write    change them                                    (make man)
"""
import json
import os
import re
import subprocess
import sys

sys.dont_write_bytecode = True
ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
BIN = os.path.join(ROOT, os.environ.get("B", "build"), "bin")
MAN = os.path.join(ROOT, "docs", "man")
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

from mdoc import blocks, literal, plain, sections, sentence  # noqa: E402
from manschema import schema_page  # noqa: E402

DATE = "November 21, 2026"
EXIT = """\
0 done; 1 something failed while running; 2 the command line is wrong or names what does not exist; 3 the kernel lacks
something; 4 nothing matched; 5 no permission; 6 the store is locked, damaged, full, or of a newer schema; 130
interrupted before any data.
"""
TABLES = ("options", "json", "store", "range", "filters", "common")
LIST = ".Pp\nThe options are as follows:\n.Bl -tag -width Ds\n.El\n"


def ask(*words):
    return subprocess.run([os.path.join(BIN, words[0]), *words[1:]], capture_output=True, text=True, check=True,
                          stdin=subprocess.DEVNULL, env={"PATH": os.environ.get("PATH", ""), "SONDE_CONFIG": "/nonexistent"}).stdout


# --- a verb's page ---

def told(verb):
    """The options listed on the page of a verb: its own, --json, --store; not those without a help text."""
    return [o for o in verb["options"] + verb["json"] + verb["store"] if o["help"]]


def flag(option):
    name = f"-{option['name']}"
    text = f"Fl {option['letter']} , {name}" if option["letter"] else f"Fl {name}"
    return text + (f" Ar {option['arg']}" if option["arg"] else "")


def word_macros(word):
    """One word of a usage line: capitals are placeholders, everything else is typed."""
    parts = [f"Ar {x}" if x.isupper() else x if x == "=" else f"Cm {plain(x)}" for x in re.findall(r"[A-Z]{2,}|=|[^A-Z=]+", word)]
    return " Ns ".join(parts)


def group_macros(tokens, depth=0):
    """The macros up to the bracket that ends the group; both are removed from `tokens`."""
    out = []
    while tokens and (token := tokens.pop(0)) != "]":
        if token == "[":
            inner = group_macros(tokens, depth + 1)
            out.append(f"Oo {inner} Oc" if depth else f"Op {inner}" if inner else "")
        elif token in ("|", "..."):
            out.append(token)
        else:
            out.append(token if token.startswith("-") else word_macros(token))
    return " ".join(x for x in out if x)


def words_of(usage):
    """The words of a usage line, without its options, which are listed one by one."""
    out = []
    tokens = re.findall(r"\[|\]|\||\.\.\.|(?:(?!\.\.\.)[^\s\[\]|])+", usage)
    while tokens:
        optional = tokens[0] == "["
        end = 1
        if optional:
            depth = 0
            for end, token in enumerate(tokens, 1):
                depth += (token == "[") - (token == "]")
                if not depth:
                    break
        else:
            while end < len(tokens) and (tokens[end] in ("|", "...") or tokens[end - 1] == "|"):
                end += 1
        group, tokens = tokens[:end], tokens[end:]
        if optional and group[1] == "--":
            out.append(f".Op Fl - Ar {group[2].lower()} ...")
        elif not group[optional].startswith("-"):
            out.append("." + group_macros(group))
    return out


def synopsis(verb):
    lines = [f".Nm sonde {verb['verb']}", *words_of(verb["usage"])]
    for option in told(verb):
        short = f"Fl {option['letter']}" if option["letter"] else f"Fl -{option['name']}"
        lines.append(f".Op {short}" + (f" Ar {option['arg']}" if option["arg"] else ""))
    if verb["range"]:
        lines.append(".Op range and filters" if verb["filters"] else ".Op range")
    return "\n".join(lines) + "\n"


def items(body):
    """[(tag line, text)] of the outer list in `body`, from after its .Bl to its .El."""
    out, depth = [], 0
    for line in body.splitlines(keepends=True):
        if line.startswith(".It ") and not depth:
            out.append([line, ""])
            continue
        depth += line.startswith((".Bl ", ".Bd ")) - line.startswith((".El", ".Ed"))
        if out:
            out[-1][1] += line
    return out


def option_list(verb, body, page):
    """The list of options in a description, with the names and in the order of the table."""
    if not told(verb):
        return body
    begin = "The options are as follows:\n.Bl -tag -width Ds\n"
    if begin not in body:
        body += LIST
    before, rest = body.split(begin, 1)
    inner, after = blocks(rest)
    mine = {n: o["name"] for o in told(verb) for n in ("-" + o["name"], o["letter"]) if n}
    shared = {n for t in TABLES for o in verb[t] for n in ("-" + o["name"], o["letter"]) if n}
    known, others = {}, []
    for tag, text in items(inner):
        names = re.findall(r"Fl (-?[a-zA-Z][a-z-]*)", tag)
        if wrong := [n for n in names if n not in shared and not n.startswith("-vs-")]:
            raise SystemExit(f"{page}: there is no option -{wrong[0]}")
        if any(n in mine for n in names):
            known.update((mine[n], text) for n in names if n in mine)
        else:
            others.append(tag + text)
    made = "".join(f".It {flag(o)}\n{known.get(o['name']) or sentence(o['help'])}" for o in told(verb))
    return before + begin + made + "".join(others) + ".El\n" + after


def new_page(verb):
    return {"NAME": f".Nm sonde-{verb['verb']}\n.Nd {plain(verb['summary'])}\n", "SYNOPSIS": "",
            "DESCRIPTION": sentence(verb["summary"]), "EXIT STATUS": "", "EXAMPLES": "",
            "SEE ALSO": ".Xr sonde 1\n"}


def verb_page(verb, text):
    name = f"sonde-{verb['verb']}"
    head, parts = sections(text) if text else (f".Dd {DATE}\n.Dt {name.upper()} 1\n.Os\n", new_page(verb))
    parts["SYNOPSIS"] = synopsis(verb)
    parts["DESCRIPTION"] = option_list(verb, parts["DESCRIPTION"], f"{name}.1")
    last = parts.pop("SEE ALSO", ".Xr sonde 1\n")
    parts["EXIT STATUS"] = parts.get("EXIT STATUS") or EXIT
    parts["EXAMPLES"] = literal(verb["examples"])
    parts["SEE ALSO"] = last
    return head + "".join(f".Sh {title}\n{body}" for title, body in parts.items())


# --- sonde(1), sonde.conf(5) ---

def tool_page(verbs, text):
    """sonde(1): each verb with its summary and its page."""
    begin, end = '.\\" verbs: made from the table\n', '.\\" end of verbs\n'
    head, rest = text.split(begin)
    lines = "".join(f".It Ic {v['verb']}\n{sentence(v['summary'])}See\n.Xr sonde-{v['verb']} 1 .\n" for v in verbs)
    return head + begin + lines + end + rest.split(end, 1)[1]


def conf_page(text):
    """sonde.conf(5): its keys, with their default values."""
    begin, end = '.\\" keys: made from the table\n', '.\\" end of keys\n'
    head, rest = text.split(begin)
    shown = ask("sonded", "--show-config", "--origin")
    out = ""
    for line in shown.splitlines():
        section, key = re.match(r"\[(\w+)\]", line), re.match(r"(\S+) += (\S*) +# default: (.*)", line)
        if section:
            out += (".El\n" if out else "") + f".Ss [{section[1]}]\n.Bl -tag -width Ds\n"
        elif key:
            name, value, said = key.groups()
            out += f".It Cm {name}\n{sentence(said)}"
            out += f"Default:\n.Li {value} .\n" if value else ""
            out += f"In the environment:\n.Ev SONDE_{name.upper().replace('-', '_')} .\n"
    return head + begin + out + ".El\n" + end + rest.split(end, 1)[1]


def read(page):
    path = os.path.join(MAN, page)
    return open(path, encoding="utf-8").read() if os.path.exists(path) else ""


def main():
    verbs = json.loads(ask("sonde", "help", "--json"))["rows"]
    pages = {f"sonde-{v['verb']}.1": verb_page(v, read(f"sonde-{v['verb']}.1")) for v in verbs}
    pages["sonde.1"] = tool_page(verbs, read("sonde.1"))
    pages["sonde.conf.5"] = conf_page(read("sonde.conf.5"))
    pages["sonde-schema.7"] = schema_page()
    stale = [name for name, text in sorted(pages.items()) if text != read(name)]
    for name in stale if "--write" in sys.argv[1:] else ():
        with open(os.path.join(MAN, name), "w", encoding="utf-8") as f:
            f.write(pages[name])
    if stale:
        print("\n".join(f"docs/man/{name}" for name in stale))
    return bool(stale) and "--write" not in sys.argv[1:]


if __name__ == "__main__":
    sys.exit(main())
