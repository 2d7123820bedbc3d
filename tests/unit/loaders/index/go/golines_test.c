/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Lines and inlined functions of Go programs, from the pclntab alone, at random addresses of their
 * text: file, line and function as `go tool addr2line` of the very version says; the chain of
 * inlined functions as llvm-symbolizer reads it in the DWARF that Go wrote as well.
 */
#include "tests/unit/loaders/index/go/gotest.h"

#include "loaders/index/go/gopc.h"
#include "schema/image/lines.h"

#define ADDRESSES 10000
#define ALLOWED   (ADDRESSES / 1000)

static const char source[] =
	"package main\n"
	"import (\"bytes\"; \"compress/gzip\"; \"crypto/sha256\"; \"encoding/json\"; \"fmt\"; \"sort\"; \"text/template\")\n"
	"type rec struct { N []int; S string }\n"
	"func main() { var b bytes.Buffer; z := gzip.NewWriter(&b); r := rec{S: \"x\"}\n"
	"  for i := 0; i < 100; i++ { r.N = append(r.N, i*7919%101) }\n"
	"  sort.Ints(r.N); j, _ := json.Marshal(r); z.Write(j); z.Close()\n"
	"  template.Must(template.New(\"t\").Parse(\"{{.S}}\")).Execute(&b, r)\n"
	"  fmt.Println(sha256.Sum256(b.Bytes())) }\n";

/* ---- random addresses, and a program's answers to them ---- */

static uint64_t random_next(uint64_t *state)
{
	*state ^= *state << 13;
	*state ^= *state >> 7;
	*state ^= *state << 17;
	return *state;
}

/* The function that holds this address; false for padding, of which no table says anything
 * reliable. */
static bool is_inside(const struct gofile *f, uint64_t addr)
{
	const struct pclntab *t = &f->table.tab;

	for (uint32_t i = 0; i < t->func_count; i++) {
		struct pclntab_record r;
		struct pclntab_func p;
		struct gopc pc;

		if (!pclntab_func(t, f->table.text, i, &p) || addr < p.start || addr >= p.end ||
		    !pclntab_record(t, i, &r))
			continue;
		pc = gopc_open(t, r.pcln, p.end - p.start);
		while (gopc_next(&pc))
			;
		return addr < p.start + pc.end;
	}
	return false;
}

static void addresses_choose(const char *path, uint64_t *addrs)
{
	uint64_t state = 88172645463325252ull;
	struct pclntab_func first, last;
	struct gofile f;

	gofile_open(&f, path);
	assert_true(pclntab_func(&f.table.tab, f.table.text, 0, &first));
	assert_true(pclntab_func(&f.table.tab, f.table.text, f.table.tab.func_count - 1, &last));
	for (size_t n = 0; n < ADDRESSES;) {
		addrs[n] = first.start + random_next(&state) % (last.end - first.start);
		n += is_inside(&f, addrs[n]);
	}
	gofile_close(&f);
}

/* The program reads the addresses, one a line, as its standard input. */
static FILE *answers(const struct gotest *g, const char *command, const uint64_t *addrs)
{
	cleanup_strbuf struct strbuf cmd = STRBUF_INIT;
	cleanup_strbuf struct strbuf text = STRBUF_INIT;
	FILE *p;

	for (size_t i = 0; i < ADDRESSES; i++)
		strbuf_addf(&text, "0x%llx\n", (unsigned long long)addrs[i]);
	gotest_write(g, "addresses", strbuf_str(&text));
	strbuf_addf(&cmd, "%s <'%s/addresses' 2>/dev/null", command, g->dir);
	p = popen(strbuf_str(&cmd), "r");
	assert_non_null(p);
	return p;
}

static bool line_read(FILE *p, char *out, size_t size)
{
	if (!fgets(out, (int)size, p))
		return false;
	out[strcspn(out, "\n")] = 0;
	return true;
}

static struct made made_of_file(const char *path)
{
	cleanup_fd int fd = open(path, O_RDONLY | O_CLOEXEC);
	struct made m = {0};

	assert_true(fd >= 0);
	m.rc = indexer_run_fd(fd, NULL, &m.r, NULL);
	made_open(&m);
	assert_non_null(m.img);
	return m;
}

/* "file:line" of a frame, "?:0" where nothing is known. */
static const char *place(const struct image_source_frame *f, char *out, size_t size)
{
	snprintf(out, size, "%s:%u", f->file ? f->file : "?", f->line);
	return out;
}

/* ---- addr2line ---- */

static size_t compare_addr2line(const struct gotest *g, size_t i, const char *path,
				const struct made *m)
{
	cleanup_strbuf struct strbuf cmd = STRBUF_INIT;
	static uint64_t addrs[ADDRESSES];
	char function[4096], where[4096], ours[4096];
	size_t wrong = 0;
	FILE *p;

	addresses_choose(path, addrs);
	gotest_env(&cmd, g->go[i], false);
	strbuf_addf(&cmd, "'%s' tool addr2line '%s'", g->go[i], path);
	p = answers(g, strbuf_str(&cmd), addrs);
	for (size_t k = 0; k < ADDRESSES; k++) {
		struct image_source_frame frames[32];
		size_t n = image_lines_at(m->img, addrs[k], frames, 32);

		assert_true(line_read(p, function, sizeof(function)) &&
			    line_read(p, where, sizeof(where)));
		place(&frames[0], ours, sizeof(ours));
		if (n && !strcmp(ours, where) && !strcmp(made_name(m, addrs[k]), function))
			continue;
		if (wrong++ < 10)
			print_message("%llx: addr2line %s %s, we %s %s\n",
				      (unsigned long long)addrs[k], function, where,
				      made_name(m, addrs[k]), n ? ours : "nothing");
	}
	pclose(p);
	return wrong;
}

TEST(files_and_lines_are_those_of_addr2line)
{
	struct gotest g;

	if (!gotest_open(&g, source)) {
		skip_missing("go");
	}
	for (size_t i = 0; i < g.count; i++) {
		char *path = gotest_build(&g, i, "", false),
		     *stripped = gotest_build(&g, i, "-ldflags='-s -w'", false);
		struct image_lines_size a, b;
		struct made m, s;
		size_t wrong;

		assert_non_null(path);
		assert_non_null(stripped);
		m = made_of_file(path);
		s = made_of_file(stripped);
		wrong = compare_addr2line(&g, i, path, &m);
		print_message("%s: %d addresses, %zu differ from addr2line\n", g.go[i], ADDRESSES,
			      wrong);
		assert_true(wrong <= ALLOWED);
		/* without DWARF there are as many rows and calls */
		a = image_lines_size(m.img);
		b = image_lines_size(s.img);
		assert_int_equal(a.inline_rows, b.inline_rows);
		assert_int_equal(a.files, b.files);
		assert_true(b.rows + 64 > a.rows && b.rows < a.rows + 64);
		made_release(&m);
		made_release(&s);
		free(path);
		free(stripped);
	}
	gotest_close(&g);
}

/* ---- llvm-symbolizer ---- */

/* What differs in spelling alone: "./" before the names of files without folder, type arguments,
 * ".abi0" behind the names of assembler functions. */
static void spelling_even(char *s)
{
	char *to = s, *end;

	while (!strncmp(s, "./", 2))
		memmove(s, s + 2, strlen(s + 2) + 1);
	for (char *from = s; *from; from++) {
		*to++ = *from;
		end = *from == '[' ? strchr(from, ']') : NULL;
		if (end)
			from = end - 1;
	}
	*to = 0;
	end = strstr(s, ".abi0");
	if (end && !end[5])
		*end = 0;
}

/* The chain as "function file:line|...", innermost first. */
static void chain_of_image(const struct made *m, uint64_t addr, char *out, size_t size)
{
	struct image_source_frame frames[32];
	size_t n = image_lines_at(m->img, addr, frames, 32), at = 0;

	*out = 0;
	for (size_t i = 0; i < n && at < size; i++) {
		char name[4096], file[4096];

		snprintf(name, sizeof(name), "%s",
			 frames[i].function ? frames[i].function : made_name(m, addr));
		place(&frames[i], file, sizeof(file));
		spelling_even(name);
		spelling_even(file);
		at += (size_t)snprintf(out + at, size - at, "%s %s|", name, file);
	}
}

static void chain_of_llvm(FILE *p, char *out, size_t size)
{
	char name[4096], file[4096];
	size_t at = 0;

	*out = 0;
	while (line_read(p, name, sizeof(name)) && *name && line_read(p, file, sizeof(file))) {
		char *column = strrchr(file, ':');

		if (column)
			*column = 0;
		spelling_even(name);
		spelling_even(file);
		if (at < size)
			at += (size_t)snprintf(out + at, size - at, "%s %s|", name, file);
	}
}

/* Go's DWARF says less than its pclntab of what the compiler generated: such addresses do not
 * count. */
static size_t compare_llvm(const struct gotest *g, const char *path, const struct made *m,
			   size_t *inlined, size_t *generated)
{
	cleanup_strbuf struct strbuf cmd = STRBUF_INIT;
	static uint64_t addrs[ADDRESSES];
	static char theirs[65536], ours[65536];
	size_t wrong = 0;
	FILE *p;

	addresses_choose(path, addrs);
	strbuf_addf(&cmd, "llvm-symbolizer --obj='%s' --inlines --functions=linkage --no-demangle",
		    path);
	p = answers(g, strbuf_str(&cmd), addrs);
	for (size_t k = 0; k < ADDRESSES; k++) {
		chain_of_llvm(p, theirs, sizeof(theirs));
		chain_of_image(m, addrs[k], ours, sizeof(ours));
		*inlined += strchr(ours, '|') && strchr(ours, '|')[1];
		if (strstr(ours, "<autogenerated>")) {
			(*generated)++;
			continue;
		}
		if (strcmp(ours, theirs) && wrong++ < 10)
			print_message("%llx: llvm-symbolizer %s\n  we %s\n",
				      (unsigned long long)addrs[k], theirs, ours);
	}
	pclose(p);
	return wrong;
}

TEST(inlined_functions_are_those_of_its_dwarf)
{
	struct gotest g;

	if (gotest_shell("llvm-symbolizer --version >/dev/null 2>&1")) {
		skip_missing("llvm-symbolizer (llvm)");
	}
	if (!gotest_open(&g, source)) {
		skip_missing("go");
	}
	for (size_t i = 0; i < g.count; i++) {
		char *path = gotest_build(&g, i, "-ldflags=-compressdwarf=false", false);
		size_t wrong, inlined = 0, generated = 0;
		struct made m;

		assert_non_null(path);
		m = made_of_file(path);
		wrong = compare_llvm(&g, path, &m, &inlined, &generated);
		print_message(
			"%s: %d addresses, %zu in inlined functions, %zu generated, %zu differ from llvm-symbolizer\n",
			g.go[i], ADDRESSES, inlined, generated, wrong);
		assert_true(inlined > ADDRESSES / 20);
		assert_true(wrong <= ALLOWED);
		made_release(&m);
		free(path);
	}
	gotest_close(&g);
}
