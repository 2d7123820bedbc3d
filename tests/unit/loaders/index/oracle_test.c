/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sonde-index compared with other programs, on files from elsewhere: readelf (names
 * demangled by binutils) for programs and libraries of this machine, `go tool nm` for Go programs
 * and their stripped twins, nm for Rust.
 */
#include "tests/unit/loaders/index/testing.h"

#include <ctype.h>
#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "schema/base/cleanup.h"
#include "schema/base/clock.h"
#include "schema/base/mem.h"
#include "schema/base/strbuf.h"
#include "tests/unit/missing.h"

#define BUDGET_NS ((getenv("SONDE_SOAK") ? 20 : 6) * NSEC_PER_SEC)

/* ---- what the oracle says: functions by address ---- */

struct said {
	uint64_t addr;
	uint64_t size;
	char *name;
	bool func; /* else: a label */
};

struct oracle {
	struct said *v;
	size_t n, cap;
};

static int said_compare(const void *a, const void *b)
{
	const struct said *x = a, *y = b;

	return x->addr < y->addr ? -1 : x->addr > y->addr;
}

static void oracle_release(struct oracle *o)
{
	for (size_t i = 0; i < o->n; i++)
		free(o->v[i].name);
	free(o->v);
}

static void oracle_add(struct oracle *o, uint64_t addr, uint64_t size, const char *name, bool func)
{
	mem_grow(o->v, o->n, o->cap);
	o->v[o->n++] = (struct said){addr, size, mem_strdup(name), func};
}

/* "  Num: Value Size Type Bind Vis Ndx Name@VERSION", names demangled */
static void readelf_line(struct oracle *o, char *line)
{
	char value[32], size[32], type[16], bind[16], vis[16], ndx[16];
	int at = 0;
	char *name;

	if (sscanf(line, " %*d: %31s %31s %15s %15s %15s %15s %n", value, size, type, bind, vis,
		   ndx, &at) < 6 ||
	    !at)
		return;
	if (*line && line[at] == '[') /* "[<other>: ..]" before the index on some machines */
		return;
	name = line + at;
	name[strcspn(name, "\n")] = 0;
	name[strcspn(name, "@")] = 0;
	if (!*name || !strcmp(ndx, "UND") || !strcmp(ndx, "ABS"))
		return;
	if (!strcmp(type, "FUNC") || !strcmp(type, "IFUNC") || !strcmp(type, "NOTYPE"))
		oracle_add(o, strtoull(value, NULL, 16), strtoull(size, NULL, 0), name,
			   strcmp(type, "NOTYPE") != 0);
}

static void oracle_readelf(struct oracle *o, const char *path)
{
	cleanup_strbuf struct strbuf cmd = STRBUF_INIT;
	char *line = NULL;
	size_t cap = 0;
	FILE *p;

	strbuf_addf(&cmd, "readelf -sW -C '%s' 2>/dev/null", path);
	p = popen(strbuf_str(&cmd), "r");
	assert_non_null(p);
	while (getline(&line, &cap, p) > 0)
		readelf_line(o, line);
	pclose(p);
	free(line);
	if (o->n)
		qsort(o->v, o->n, sizeof(*o->v), said_compare);
}

/* The first entry at this address; n without one. */
static size_t oracle_at(const struct oracle *o, uint64_t addr)
{
	size_t lo = 0, hi = o->n;

	while (lo < hi) {
		size_t mid = lo + (hi - lo) / 2;

		if (o->v[mid].addr < addr)
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo < o->n && o->v[lo].addr == addr ? lo : o->n;
}

static bool oracle_knows(const struct oracle *o, uint64_t addr, const char *name)
{
	for (size_t i = oracle_at(o, addr); i < o->n && o->v[i].addr == addr; i++)
		if (!strcmp(o->v[i].name, name))
			return true;
	return false;
}

/* ---- a folder to build in ---- */

static char *work_folder(void)
{
	char template[] = "/tmp/sonde-oracle.XXXXXX";

	assert_non_null(mkdtemp(template));
	return mem_strdup(template);
}

static void work_remove(char *dir)
{
	cleanup_strbuf struct strbuf cmd = STRBUF_INIT;

	strbuf_addf(&cmd, "rm -rf '%s'", dir);
	assert_int_equal(system(strbuf_str(&cmd)), 0);
	free(dir);
}

static int shell(const char *dir, const char *what)
{
	cleanup_strbuf struct strbuf cmd = STRBUF_INIT;

	strbuf_addf(&cmd, "cd '%s' && %s", dir, what);
	return system(strbuf_str(&cmd));
}

static void write_file(const char *dir, const char *name, const char *text)
{
	cleanup_strbuf struct strbuf path = STRBUF_INIT;
	cleanup_file FILE *f = NULL;

	strbuf_addf(&path, "%s/%s", dir, name);
	f = fopen(strbuf_str(&path), "w");
	assert_non_null(f);
	fputs(text, f);
}

/* ---- programs and libraries of this machine ---- */

struct tally {
	size_t files, functions, wrong;
};

static struct made made_of_file(const char *path)
{
	cleanup_fd int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	struct made m = {.rc = -1};

	if (fd < 0)
		return m;
	m.rc = indexer_run_fd(fd, NULL, &m.r, NULL);
	made_open(&m);
	return m;
}

static bool ends_in(const char *s, const char *end)
{
	size_t a = strlen(s), b = strlen(end);

	return a >= b && !strcmp(s + a - b, end);
}

/* Each function of the oracle begins where the index says so, under one of the names it has there.
 */
static void compare_forward(const struct made *m, const struct oracle *o, const char *path,
			    struct tally *t)
{
	for (size_t i = 0; i < o->n; i++) {
		struct image_symbol s;

		if (!o->v[i].func || !o->v[i].size ||
		    !strcmp(o->v[i].name, "_nl_finddomain_subfreeres"))
			continue;
		t->functions++;
		if (image_symbol_at(m->img, o->v[i].addr, &s) && s.addr == o->v[i].addr &&
		    oracle_knows(o, s.addr, s.name))
			continue;
		if (t->wrong++ < 20)
			print_message("%s: %s at %llx\n", path, o->v[i].name,
				      (unsigned long long)o->v[i].addr);
	}
}

/* Each name of the index is one of the oracle's at that address. */
static void compare_backward(const struct made *m, const struct oracle *o, const char *path,
			     struct tally *t)
{
	struct image_symbol s;

	for (size_t i = 0; image_symbol_get(m->img, i, &s); i++) {
		if (ends_in(s.name, "@plt") || oracle_knows(o, s.addr, s.name) ||
		    ends_in(s.name, "..."))
			continue;
		if (t->wrong++ < 20)
			print_message("%s: nobody knows %s at %llx\n", path, s.name,
				      (unsigned long long)s.addr);
	}
}

static void compare_file(const char *path, struct tally *t)
{
	struct oracle o = {0};
	struct made m = made_of_file(path);

	if (!m.rc && !image_ident(m.img)->go) {
		oracle_readelf(&o, path);
		compare_forward(&m, &o, path, t);
		compare_backward(&m, &o, path, t);
		t->files++;
	}
	oracle_release(&o);
	made_release(&m);
}

/* "/proc/self/exe" would be readelf's own */
static char *self_path(void)
{
	char *path = realpath("/proc/self/exe", NULL);

	assert_non_null(path);
	return path;
}

static int by_name(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

/* Every `step`-th file of a folder, until the time is over. */
static void compare_folder(const char *dir, size_t step, int64_t until, struct tally *t)
{
	cleanup_dir DIR *d = opendir(dir);
	char **names = NULL;
	size_t n = 0, cap = 0;

	for (struct dirent *e; d && (e = readdir(d));) {
		mem_grow(names, n, cap);
		names[n++] = mem_strdup(e->d_name);
	}
	if (n)
		qsort(names, n, sizeof(*names), by_name);
	for (size_t i = 0; i < n; i++) {
		cleanup_strbuf struct strbuf path = STRBUF_INIT;
		struct stat st;

		strbuf_addf(&path, "%s/%s", dir, names[i]);
		if (i % step == 0 && clock_boot_ns() < until && !lstat(strbuf_str(&path), &st) &&
		    S_ISREG(st.st_mode) && st.st_size < (40 << 20) && !strchr(names[i], '\''))
			compare_file(strbuf_str(&path), t);
		free(names[i]);
	}
	free(names);
}

TEST(functions_of_this_machine_agree_with_readelf)
{
	const int64_t start = clock_boot_ns();
	struct tally t = {0};
	char *self;

	if (system("readelf --version >/dev/null 2>&1")) {
		skip_missing("readelf (binutils)");
	}
	compare_folder("/usr/bin", 1, start + BUDGET_NS / 2, &t);
	compare_folder("/usr/lib/x86_64-linux-gnu", 1, start + BUDGET_NS, &t);
	self = self_path();
	compare_file(self, &t);
	free(self);
	print_message("%zu files, %zu functions, %zu differ\n", t.files, t.functions, t.wrong);
	assert_true(t.files > 0);
	assert_int_equal(t.wrong, 0);
}

TEST(a_32_bit_library_agrees_with_readelf)
{
	cleanup_strbuf struct strbuf path = STRBUF_INIT;
	struct tally t = {0};
	char *dir = work_folder();

	write_file(dir, "a.c",
		   "int beta; static int (*volatile p)(int); int alpha(int a) { return a; }\n"
		   "__attribute__((weak)) int gamma(int a) { p = alpha; return p(a) + beta; }\n");
	if (shell(dir, "gcc -m32 -O1 -shared -nostdlib -fPIC -o a.so a.c 2>build.log")) {
		work_remove(dir);
		skip_missing("a gcc that makes 32-bit code (gcc-multilib)");
	}
	strbuf_addf(&path, "%s/a.so", dir);
	compare_file(strbuf_str(&path), &t);
	assert_true(t.functions >= 2);
	assert_int_equal(t.wrong, 0);
	work_remove(dir);
}

/* ---- PLT ---- */

TEST(plt_stubs_agree_with_objdump)
{
	char *line = NULL, name[512];
	size_t cap = 0, seen = 0;
	struct made m = made_of_file("/proc/self/exe");
	FILE *p = popen("objdump -d -j .plt -j .plt.sec -j .plt.got /proc/$PPID/exe 2>/dev/null",
			"r");
	unsigned long long addr;

	assert_int_equal(m.rc, 0);
	while (getline(&line, &cap, p) > 0)
		if (sscanf(line, "%llx <%511[^>]>:", &addr, name) == 2 && ends_in(name, "@plt") &&
		    strcmp(made_name(&m, addr), "")) {
			assert_string_equal(made_name(&m, addr), name);
			seen++;
		}
	pclose(p);
	free(line);
	if (!seen)
		print_message("no objdump, or no stubs\n");
	made_release(&m);
}

/* ---- Go ---- */

static const char go_source[] =
	"package main\n"
	"import (\"fmt\"; \"sort\"; \"strings\")\n"
	"type box[T any] struct{ v []T }\n"
	"//go:noinline\n"
	"func (b *box[T]) put(x T) int { b.v = append(b.v, x); return len(b.v) }\n"
	"//go:noinline\n"
	"func mapped[T, U any](in []T, f func(T) U) (out []U) { for _, x := range in { out = append(out, f(x)) }; return }\n"
	"func main() { b := &box[string]{}; s := strings.Fields(\"b a\"); sort.Strings(s)\n"
	"  fmt.Println(b.put(s[0]), mapped(s, func(x string) int { return len(x) })) }\n";

/* "  addr size T name" of `go tool nm -size` for the twin that has symbols */
static void oracle_go_nm(struct oracle *o, const char *dir, const char *file)
{
	cleanup_strbuf struct strbuf cmd = STRBUF_INIT;
	unsigned long long addr, size;
	char *line = NULL, kind;
	size_t cap = 0;
	int at;
	FILE *p;

	strbuf_addf(&cmd, "cd '%s' && go tool nm -size %s", dir, file);
	p = popen(strbuf_str(&cmd), "r");
	while (getline(&line, &cap, p) > 0) {
		at = 0;
		if (sscanf(line, " %llx %llu %c %n", &addr, &size, &kind, &at) < 3 || !at ||
		    toupper(kind) != 'T')
			continue;
		line[strcspn(line, "\n")] = 0;
		/* the pclntab does not say which calling convention an assembler function has */
		if (ends_in(line + at, ".abi0"))
			line[strlen(line) - 5] = 0;
		oracle_add(o, addr, size, line + at, true);
	}
	pclose(p);
	free(line);
	if (o->n)
		qsort(o->v, o->n, sizeof(*o->v), said_compare);
}

/* Marker symbols of the linker, which have no code, and second names of assembler functions. */
static bool go_mark(const struct said *s)
{
	return !s->size || !strcmp(s->name, "runtime.text") || !strcmp(s->name, "runtime.etext") ||
	       !strcmp(s->name, "go:buildid");
}

/* Up to Go 1.20 the linker writes type arguments as "[...]" into the pclntab (cmd/link, nameParts).
 */
static void go_elide(const char *name, struct strbuf *out)
{
	const char *from = strchr(name, '['), *to = strrchr(name, ']');

	strbuf_reset(out);
	if (!from || to <= from)
		strbuf_addstr(out, name);
	else
		strbuf_addf(out, "%.*s[...]%s", (int)(from - name), name, to + 1);
}

/* A type inside a function is "f·7" in the pclntab; the linker writes "f.7" into .symtab. */
static bool go_knows(const struct oracle *o, uint64_t addr, const char *name, bool elided_names)
{
	cleanup_strbuf struct strbuf dotted = STRBUF_INIT, elided = STRBUF_INIT;

	for (const char *p = name; *p; p++)
		if (!strncmp(p, "\u00b7", 2))
			strbuf_addch(&dotted, *++p ? '.' : 0);
		else
			strbuf_addch(&dotted, *p);
	if (oracle_knows(o, addr, strbuf_str(&dotted)))
		return true;
	for (size_t i = oracle_at(o, addr); elided_names && i < o->n && o->v[i].addr == addr; i++) {
		go_elide(o->v[i].name, &elided);
		if (!strcmp(strbuf_str(&elided), strbuf_str(&dotted)))
			return true;
	}
	return false;
}

static void compare_go(const char *dir, const char *twin, const char *stripped)
{
	cleanup_strbuf struct strbuf path = STRBUF_INIT;
	struct oracle o = {0};
	struct made m;
	size_t wrong = 0, right = 0;
	bool elided_names = !system("go version | grep -qE 'go1\\.(18|19|20)([. ]|$)'");

	strbuf_addf(&path, "%s/%s", dir, stripped);
	m = made_of_file(strbuf_str(&path));
	assert_int_equal(m.rc, 0);
	assert_true(image_ident(m.img)->go);
	oracle_go_nm(&o, dir, twin);
	assert_true(o.n > 1000);
	for (size_t i = 0; i < o.n; i++) {
		struct image_symbol s;

		if (go_mark(&o.v[i]))
			continue;
		/* the pclntab goes to the next function: padding belongs to the one before */
		if (image_symbol_at(m.img, o.v[i].addr, &s) && s.addr == o.v[i].addr &&
		    go_knows(&o, s.addr, s.name, elided_names) && s.size >= o.v[i].size &&
		    s.size < o.v[i].size + 64)
			right++;
		else if (wrong++ < 10)
			print_message("%s: %s at %llx\n", stripped, o.v[i].name,
				      (unsigned long long)o.v[i].addr);
	}
	print_message("%s: %zu functions right, %zu wrong\n", stripped, right, wrong);
	assert_int_equal(wrong, 0);
	oracle_release(&o);
	made_release(&m);
}

TEST(stripped_go_programs_keep_the_names_of_their_twins)
{
	static const char build[] =
		"go build -o plain . && go build -ldflags='-s -w' -o plain_s . && "
		"go build -buildmode=pie -o pie . && go build -buildmode=pie -ldflags='-s -w' -o pie_s . && "
		"cp plain_s plain_n && cp pie_s pie_n && "
		/* and no section table any more: e_shoff, e_shnum, e_shstrndx */
		"for f in plain_n pie_n; do printf '\\0\\0\\0\\0\\0\\0\\0\\0' | dd of=$f bs=1 seek=40 conv=notrunc && "
		"printf '\\0\\0\\0\\0' | dd of=$f bs=1 seek=60 conv=notrunc; done";
	cleanup_strbuf struct strbuf cmd = STRBUF_INIT;
	char *dir;

	if (system("go version >/dev/null 2>&1")) {
		skip_missing("go");
	}
	dir = work_folder();
	write_file(dir, "main.go", go_source);
	write_file(dir, "go.mod", "module example.org/oracle\n\ngo 1.18\n");
	strbuf_addf(
		&cmd,
		"export GOFLAGS= GOENV=off GOTOOLCHAIN=local GOPROXY=off CGO_ENABLED=0; { %s; } 2>build.log",
		build);
	assert_int_equal(shell(dir, strbuf_str(&cmd)), 0);
	compare_go(dir, "plain", "plain");
	compare_go(dir, "plain", "plain_s");
	compare_go(dir, "plain", "plain_n");
	compare_go(dir, "pie", "pie");
	compare_go(dir, "pie", "pie_s");
	compare_go(dir, "pie", "pie_n");
	work_remove(dir);
}

/* ---- Rust ---- */

static const char rust_source[] =
	"use std::collections::BTreeMap;\n"
	"pub struct Tree<T> { m: BTreeMap<String, T> }\n"
	"impl<T: Clone> Tree<T> { #[inline(never)] pub fn plant(&mut self, k: &str, v: &T) -> usize {\n"
	"  self.m.insert(k.to_string(), v.clone()); self.m.len() } }\n"
	"fn main() { let mut t = Tree { m: BTreeMap::new() };\n"
	"  println!(\"{}\", std::env::args().map(|a| t.plant(&a, &7u32)).sum::<usize>()); }\n";

TEST(rust_names_of_both_manglings_agree_with_nm)
{
	static const char *const manglings[] = {"legacy", "v0"};
	char *dir;

	if (system("rustc --version >/dev/null 2>&1")) {
		skip_missing("rustc");
	}
	dir = work_folder();
	write_file(dir, "r.rs", rust_source);
	for (size_t i = 0; i < 2; i++) {
		cleanup_strbuf struct strbuf cmd = STRBUF_INIT, path = STRBUF_INIT;
		struct tally t = {0};
		struct image_symbol s;
		bool found = false;
		struct made m;

		strbuf_addf(
			&cmd,
			"RUSTC_BOOTSTRAP=1 rustc -O -Z unstable-options -C symbol-mangling-version=%s -o r_%s r.rs 2>build.log",
			manglings[i], manglings[i]);
		if (shell(dir, strbuf_str(&cmd))) {
			/* a stable compiler may refuse one of the two: then there is nothing to
			 * compare with */
			print_message("rustc does not make %s\n", manglings[i]);
			continue;
		}
		strbuf_addf(&path, "%s/r_%s", dir, manglings[i]);
		compare_file(strbuf_str(&path), &t);
		print_message("%s: %zu functions, %zu differ\n", manglings[i], t.functions,
			      t.wrong);
		assert_true(t.functions > 500);
		assert_int_equal(t.wrong, 0);
		m = made_of_file(strbuf_str(&path));
		for (size_t k = 0; image_symbol_get(m.img, k, &s); k++) {
			assert_null(strstr(s.name, "17h"));
			found |= strstr(s.name, "Tree<") && ends_in(s.name, "plant");
		}
		assert_true(found);
		made_release(&m);
	}
	work_remove(dir);
}
