# SPDX-License-Identifier: Apache-2.0
"""mdoc: converts text to the macros of a man page, and splits a page into its sections. Only what manpages.py needs."""
import re

MACROS = re.compile(r"^(A[cdknopqrt]|B[cdfkloqtx]|C[dm]|D[1bcdlotvx]|E[cdfklmnorsv]|F[acdlnotrx]|Hf|I[cnt]|L[bikp]|M[st]|"
                    r"N[dmosx]|O[copstx]|P[acfopq]|Q[cloq]|R[esv]|S[choqsmtxy]|T[an]|U[dx]|V[at]|X[corx])$")


def plain(text):
    """Escapes text for the formatter: backslashes, a leading dot, words that are names of macros."""
    text = text.replace("\\", "\\e")
    text = " ".join(f"\\&{w}" if MACROS.match(w) else w for w in text.split(" "))
    return "\\&" + text if text[:1] in (".", "'") else text


def sentence(text):
    """A line of help as a sentence, on one source line."""
    text = text.strip()
    text = text[:1].upper() + text[1:]
    return plain(text) + ("" if text.endswith((".", "?", "!")) else ".") + "\n"


def literal(lines):
    """Literal lines."""
    def safe(line):
        line = line.replace("\\", "\\e")
        return "\\&" + line if line[:1] in (".", "'") else line
    return ".Bd -literal -offset indent\n" + "".join(safe(x) + "\n" for x in lines) + ".Ed\n"


def sections(text):
    """(the text before the first .Sh, {title: body}), in order."""
    head, *rest = re.split(r"^\.Sh (.+)\n", text, flags=re.M)
    return head, dict(zip(rest[::2], rest[1::2]))


def blocks(text):
    """The text up to the .El that ends the current list, and the text after it."""
    depth, at = 0, 0
    for line in text.splitlines(keepends=True):
        if line.startswith(".El") and not depth:
            return text[:at], text[at + len(line):]
        depth += line.startswith((".Bl ", ".Bd ")) - line.startswith((".El", ".Ed"))
        at += len(line)
    raise ValueError("a list without .El")
