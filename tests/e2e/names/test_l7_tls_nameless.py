# SPDX-License-Identifier: Apache-2.0
"""Functions of OpenSSL 3 in a stripped program from which the linker took what is not called: found where it is certain which ones they are, else none. The program has
functions of the shapes that OpenSSL's have; a real one is tested by `make long-tls`."""
import subprocess

import pytest
from conftest import BIN, need

SOURCE = r"""
#include <stddef.h>
struct ssl { void *inner; int n; };
__attribute__((noipa)) void fails(const char *f) { __asm__ volatile("" : : "r"(f) : "memory"); }
const char *volatile version = "OpenSSL 3.6.3 9 Jun 2026";
static const char name_read[] = "SSL_read", name_write[] = "SSL_write", inner_read[] = "ssl_read_internal", inner_write[] = "ssl_write_internal";
__attribute__((noipa)) int ssl_read_internal(struct ssl *s, void *p, size_t n, size_t *got)
{
	if (!s->inner) { fails(inner_read); return -1; }
	*got = n; __asm__ volatile("" : : "r"(p) : "memory"); return 1;
}
__attribute__((noipa)) int ssl_write_internal(struct ssl *s, const void *p, size_t n, unsigned long flags, size_t *put)
{
	if (!s->inner) { fails(inner_write); return -1; }
	*put = n + flags; __asm__ volatile("" : : "r"(p) : "memory"); return 1;
}
__attribute__((noipa)) int SSL_read(struct ssl *s, void *p, int n)
{
	size_t got;
	int ret;
	if (n < 0) { fails(name_read); return -1; }
	ret = ssl_read_internal(s, p, (size_t)n, &got);
	return ret > 0 ? (int)got : ret;
}
__attribute__((noipa)) int SSL_write(struct ssl *s, const void *p, int n)
{
	size_t put;
	int ret;
	if (n < 0) { fails(name_write); return -1; }
	ret = ssl_write_internal(s, p, (size_t)n, 0, &put);
	return ret > 0 ? (int)put : ret;
}
__attribute__((noipa)) int SSL_read_ex(struct ssl *s, void *p, size_t n, size_t *got) { int ret = ssl_read_internal(s, p, n, got); return ret < 0 ? 0 : ret; }
__attribute__((noipa)) int SSL_write_ex2(struct ssl *s, const void *p, size_t n, unsigned long flags, size_t *put) { int ret = ssl_write_internal(s, p, n, flags, put); return ret < 0 ? 0 : ret; }
__attribute__((noipa)) int SSL_write_ex(struct ssl *s, const void *p, size_t n, size_t *put) { return SSL_write_ex2(s, p, n, 0, put); }
__attribute__((noipa)) int bio_write(struct ssl **b, const void *p, size_t n, size_t *put) { int ret = ssl_write_internal(*b, p, n, 0, put); return ret < 0 ? -2 : ret; }
__attribute__((noipa)) int bio_read(struct ssl **b, void *p, size_t n, size_t *got) { int ret = ssl_read_internal(*b, p, n, got); return ret < 0 ? -2 : ret; }
int main(int argc, char **argv)
{
	struct ssl s = {argv, argc}, *b = &s;
	char buf[8];
	size_t n = (size_t)version[8];
	return CALLS;
}
"""
EX = "SSL_read_ex(&s, buf, 8, &n) + SSL_write_ex(&s, buf, 8, &n)"
CASES = {  # what is called: which of (read with a length, read with a place, write ..., write ...) are found
    EX: (False, "rcx", False, "r8"),
    "SSL_read(&s, buf, 8) + " + EX: (False, "rcx", False, "r8"),  # in the inner one, which all call
    "SSL_read(&s, buf, 8) + SSL_write(&s, buf, 8)": (True, None, True, None),
    "SSL_read(&s, buf, 8) + SSL_write(&s, buf, 8) + " + EX: (False, "rcx", False, "r8"),
    "bio_write(&b, buf, 8, &n) + " + EX: None,
    "bio_read(&b, buf, 8, &n) + SSL_write_ex(&s, buf, 8, &n)": None,
    "SSL_read_ex(&s, buf, 8, &n)": None,  # nothing writes
}


@pytest.mark.parametrize("calls", CASES)
def test_what_the_linker_left_is_found_or_nothing_is(tmp_path, calls):
    need("gcc")
    source, path = tmp_path / "x.c", str(tmp_path / "x")
    source.write_text(SOURCE.replace("CALLS", calls))
    subprocess.run(["gcc", "-O2", "-fPIE", "-pie", "-ffunction-sections", "-fdata-sections", "-Wl,--gc-sections", "-s", "-o", path, str(source)], check=True)
    subprocess.run([f"{BIN}/sonde-index", path, "-o", path + ".idx"], check=True, stdout=subprocess.DEVNULL)
    told = subprocess.run([f"{BIN}/sonde-index", "--dump-tls", path + ".idx"], check=True, capture_output=True, text=True).stdout
    if CASES[calls] is None:
        assert told == "0 0 openssl read blind\n", told
        return
    entries = [line for line in told.splitlines() if " entry " in line]
    got = []
    for side in (" read ", " write "):
        places = [line.split("count-at ")[1].split()[0] for line in entries if side in line and "count-at" in line]
        got += [any(side in line and "count-at" not in line for line in entries), places[0] if places else None]
        assert len(places) < 2
    assert tuple(got) == CASES[calls] and "blind" not in told, told
