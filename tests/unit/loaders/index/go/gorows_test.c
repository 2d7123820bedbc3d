/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gorows against .debug_frame as readelf reads it, over whole programs of each Go that is here: the
 * linker writes it from the same tables, so each row's CFA must be the same; but for the functions
 * of which goframe.h says otherwise.
 */
#include "schema/base/array.h"
#include "tests/unit/loaders/index/go/gotest.h"

#include "loaders/index/go/goline.h"
#include "loaders/index/go/gorows.h"
#include "loaders/index/unwind/rowtable.h"
#include "schema/base/clock.h"

static const char source[] =
	"package main\n"
	"import (\"bytes\"; \"compress/gzip\"; \"crypto/sha256\"; \"encoding/json\"; \"fmt\"; \"sort\")\n"
	"type rec struct { N []int; S string }\n"
	"func main() { var b bytes.Buffer; z := gzip.NewWriter(&b); r := rec{S: \"x\"}\n"
	"  for i := 0; i < 100; i++ { r.N = append(r.N, i*7919%101) }\n"
	"  sort.Ints(r.N); j, _ := json.Marshal(r); z.Write(j); z.Close()\n"
	"  fmt.Println(sha256.Sum256(b.Bytes())) }\n";

/* ---- rows, as made ---- */

struct table {
	struct unwind_head *head; /* own */
	const struct row_ext *exts;
	struct rowtable rows;
	size_t size;
};

static void table_make(struct table *t, const char *path)
{
	uint64_t lo = UINT64_MAX, hi = 0;
	struct gofile f;
	struct rows r;
	void *data = NULL;

	gofile_open(&f, path);
	for (size_t i = 0; i < f.elf.segment_count; i++) {
		const Elf64_Phdr *p = &f.elf.segments[i];

		if (p->p_type == PT_LOAD && (p->p_flags & PF_X)) {
			lo = p->p_vaddr < lo ? p->p_vaddr : lo;
			hi = p->p_vaddr + p->p_memsz > hi ? p->p_vaddr + p->p_memsz : hi;
		}
	}
	assert_int_equal(rows_init(&r, lo & ~4095ull, hi), 0);
	assert_int_equal(gorows_add(&f.elf, &f.table, &r), 0);
	assert_int_equal(rows_finish(&r, &data, &t->size), 0);
	assert_non_null(data);
	rows_release(&r);
	gofile_close(&f);
	t->head = data;
	assert_int_equal(rowtable_init(&t->rows, data, t->size), 0);
	t->exts = t->rows.exts;
}

static void table_release(struct table *t)
{
	rowtable_release(&t->rows);
	free(t->head);
}

/* Index of the row that holds at this address; rows.count: none. */
static size_t table_at(const struct table *t, uint64_t addr)
{
	size_t lo = 0, hi = t->rows.count;

	while (lo < hi) {
		size_t mid = lo + (hi - lo) / 2;

		if (t->rows.rows[mid].addr <= addr)
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo ? lo - 1 : t->rows.count;
}

/* Distance of CFA from RSP; -1: another kind of rule. */
static int64_t depth_of(const struct table *t, uint64_t rule)
{
	const struct row_ext *x = &t->exts[ROW_RULE_KIND(rule) == ROW_EXT ? ROW_RULE_EXT(rule) : 0];

	if (ROW_RULE_KIND(rule) == ROW_RSP)
		return 8 * (int64_t)ROW_RULE_OFFSET(rule);
	if (ROW_RULE_KIND(rule) != ROW_EXT || x->reg != ROW_REG_RSP)
		return -1;
	return x->kind == ROW_EXT_CFA || x->kind == ROW_EXT_INJECTED || x->kind == ROW_EXT_RA_REG ?
		       x->a :
		       -1;
}

/* ---- the comparison ---- */

struct tally {
	size_t rows, special, wrong;
	char special_names[4096];
};

/* The function at an address, by `go tool nm`'s stand-in: the pclntab itself. */
static const char *name_at(const struct gofile *f, uint64_t addr)
{
	struct pclntab_func p;

	for (uint32_t i = 0; i < f->table.tab.func_count; i++)
		if (pclntab_func(&f->table.tab, f->table.text, i, &p) && addr >= p.start &&
		    addr < p.end)
			return p.name;
	return "";
}

/* All of [lo, hi) must have this depth. */
static void compare_range(const struct table *t, const struct gofile *f, uint64_t lo, uint64_t hi,
			  int64_t depth, struct tally *tally)
{
	for (size_t i = table_at(t, lo); i < t->rows.count; i++) {
		uint64_t at = t->rows.rows[i].addr;
		int64_t ours = depth_of(t, t->rows.rows[i].rule);
		const char *name;

		if (at >= hi)
			return;
		tally->rows++;
		if (ours == depth)
			continue;
		name = name_at(f, lo);
		if (ours < 0) {
			tally->special++;
			if (!strstr(tally->special_names, name) &&
			    strlen(tally->special_names) + strlen(name) + 2 <
				    sizeof(tally->special_names))
				strcat(strcat(tally->special_names, name), " ");
			continue;
		}
		tally->wrong++;
		if (tally->wrong < 20)
			print_message("%s: %#llx..%#llx: readelf says rsp+%lld, we rsp+%lld\n",
				      name, (unsigned long long)lo, (unsigned long long)hi,
				      (long long)depth, (long long)ours);
	}
}

static struct tally compare_with_readelf(const char *path)
{
	cleanup_strbuf struct strbuf cmd = STRBUF_INIT;
	struct tally tally = {0};
	uint64_t lo = 0, fde_end = 0;
	int64_t depth = -1;
	struct table t;
	struct gofile f;
	char *line = NULL;
	size_t cap = 0;
	FILE *p;

	table_make(&t, path);
	gofile_open(&f, path);
	strbuf_addf(&cmd, "readelf -wF '%s' 2>/dev/null", path);
	p = popen(strbuf_str(&cmd), "r");
	assert_non_null(p);
	while (getline(&line, &cap, p) > 0) {
		unsigned long long addr, end;
		long long offset;
		char *pc = strstr(line, " FDE ") ? strstr(line, " pc=") : NULL;

		if (pc && sscanf(pc, " pc=%llx..%llx", &addr, &end) == 2) {
			if (depth >= 0 && lo < fde_end)
				compare_range(&t, &f, lo, fde_end, depth, &tally);
			depth = -1;
			fde_end = end;
		} else if (sscanf(line, "%16llx rsp+%lld", &addr, &offset) == 2) {
			if (depth >= 0 && lo < addr)
				compare_range(&t, &f, lo, addr, depth, &tally);
			lo = addr;
			depth = fde_end ? offset : -1;
		}
	}
	if (depth >= 0 && lo < fde_end)
		compare_range(&t, &f, lo, fde_end, depth, &tally);
	pclose(p);
	free(line);
	gofile_close(&f);
	table_release(&t);
	return tally;
}

/* What goframe.h says pcsp does not describe. */
static const char allowed[] =
	" runtime.goexit runtime.mstart runtime.rt0_go _rt0_amd64 _rt0_amd64_linux runtime.sigreturn "
	"runtime.sigreturn__sigaction gogo runtime.gogo runtime.mcall runtime.clone runtime.switchToCrashStack0 "
	"runtime.morestack runtime.systemstack runtime.asmcgocall runtime.asmcgocall_no_g runtime.nanotime1 "
	"runtime.walltime1 runtime.walltime time.now runtime.vgetrandom1 runtime.callCgoSigaction runtime.callCgoMmap "
	"runtime.callCgoMunmap runtime.sigfwd runtime.cgocallback runtime.cgocallback_gofunc ";

static void check_program(const char *go, const char *kind, const char *path)
{
	struct tally t = compare_with_readelf(path);
	char *save = NULL;

	print_message("%s, %s: %zu rows, %zu wrong; not by pcsp: %zu rows of %s\n", go, kind,
		      t.rows, t.wrong, t.special, t.special_names);
	assert_int_equal(t.wrong, 0);
	assert_true(t.rows > 10000);
	for (char *name = strtok_r(t.special_names, " ", &save); name;
	     name = strtok_r(NULL, " ", &save)) {
		cleanup_strbuf struct strbuf word = STRBUF_INIT;

		strbuf_addf(&word, " %s ", name);
		if (!strstr(allowed, strbuf_str(&word)))
			fail_msg("%s is not among the functions that pcsp does not describe", name);
	}
}

static const struct {
	const char *kind, *flags;
	bool cgo;
	bool matrix; /* only where a matrix is asked for */
} kinds[] = {
	{"program", "", false, false},
	{"PIE", "-buildmode=pie", false, true},
	{"cgo", "", true, true},
	{"cgo PIE", "-buildmode=pie", true, false},
};

TEST(every_row_agrees_with_debug_frame)
{
	struct gotest g;

	if (!gotest_open(&g, source)) {
		skip_missing("go");
	}
	for (size_t i = 0; i < g.count; i++)
		for (size_t k = 0; k < ARRAY_SIZE(kinds); k++) {
			char *path;

			if (kinds[k].matrix && !getenv("SONDE_GO"))
				continue;
			gotest_write(&g, "c.go",
				     kinds[k].cgo ? "package main\nimport \"C\"\n" :
						    "package main\n");
			path = gotest_build(&g, i, kinds[k].flags, kinds[k].cgo);
			if (path)
				check_program(g.go[i], kinds[k].kind, path);
			else
				print_message("%s: does not build here: %s\n", g.go[i],
					      kinds[k].kind);
			free(path);
		}
	gotest_close(&g);
}

/* Equal code at equal addresses is not promised; rows of the same number and text of the same size
 * are. */
TEST(a_stripped_program_has_the_rows_of_its_twin)
{
	struct gotest g;

	if (!gotest_open(&g, source)) {
		skip_missing("go");
	}
	for (size_t i = 0; i < g.count; i++) {
		char *plain = gotest_build(&g, i, "", false);
		char *stripped = gotest_build(&g, i, "-ldflags='-s -w'", false);
		struct table a, b;

		assert_non_null(plain);
		assert_non_null(stripped);
		table_make(&a, plain);
		table_make(&b, stripped);
		assert_int_equal(a.rows.count, b.rows.count);
		assert_int_equal(a.head->ext_count, b.head->ext_count);
		assert_int_equal(a.head->unsupported, 0);
		assert_true(a.head->flags & UNWIND_F_GO);
		table_release(&a);
		table_release(&b);
		free(plain);
		free(stripped);
	}
	gotest_close(&g);
}

/* How many extensions of this kind. */
static size_t ext_count(const struct table *t, uint8_t kind)
{
	size_t n = 0;

	for (size_t i = 0; i < t->head->ext_count; i++)
		n += t->exts[i].kind == kind;
	return n;
}

/* Debian's dockerd finds g through the GOT (R_X86_64_TPOFF64 of runtime.tlsg, by readelf -r: 0 in 8
 * bytes, so FS - 8). */
TEST(g_behind_the_got_is_found_in_a_program)
{
	struct table t;

	if (access("/usr/sbin/dockerd", R_OK)) {
		skip_missing("dockerd (docker.io)");
	}
	table_make(&t, "/usr/sbin/dockerd");
	assert_int_equal(t.head->unsupported, 0);
	assert_int_equal(ext_count(&t, ROW_EXT_GO_SCHED), 1);
	for (size_t i = 0; i < t.head->ext_count; i++)
		if (t.exts[i].kind == ROW_EXT_GO_SCHED)
			assert_int_equal(t.exts[i].a, -8);
	table_release(&t);
}

TEST(g_of_a_shared_library_is_nowhere_sure)
{
	struct table t;
	struct gotest g;
	char *path;

	if (!gotest_open(&g, source)) {
		skip_missing("go");
	}
	gotest_write(&g, "c.go",
		     "package main\nimport \"C\"\n//export Nothing\nfunc Nothing() {}\n");
	path = gotest_build(&g, 0, "-buildmode=c-shared", true);
	if (!path) {
		gotest_close(&g);
		skip_missing("cgo (gcc)");
	}
	table_make(&t, path);
	assert_int_equal(ext_count(&t, ROW_EXT_GO_SCHED), 0);
	assert_true(t.head->unsupported >= 1);
	table_release(&t);
	free(path);
	gotest_close(&g);
}

/* CPU time on a shared machine: printed, with a bound that only a gross mistake exceeds. */
TEST(rows_and_lines_cost_milliseconds_a_megabyte)
{
	struct gotest g;
	char *path;
	struct gofile f;
	struct rows r;
	struct lineset lines;
	struct elf_range *code;
	size_t count;
	void *out = NULL;
	size_t size = 0;
	int64_t t[3];
	double mb;

	if (!gotest_open(&g, source)) {
		skip_missing("go");
	}
	path = gotest_build(&g, 0, "", false);
	assert_non_null(path);
	gofile_open(&f, path);
	mb = (double)f.table.tab.len / (1 << 20);
	assert_int_equal(elf_code_ranges(&f.elf, &code, &count), 0);
	assert_int_equal(rows_init(&r, code[0].start & ~4095ull, code[count - 1].end), 0);
	lineset_init(&lines, code, count);
	t[0] = clock_cpu_ns();
	assert_int_equal(gorows_add(&f.elf, &f.table, &r), 0);
	assert_int_equal(rows_finish(&r, &out, &size), 0);
	t[1] = clock_cpu_ns();
	assert_int_equal(goline_add(&f.elf, &f.table, &lines), 0);
	t[2] = clock_cpu_ns();
	print_message(
		"%.1f MB of pclntab: rows %.1f ms, %.0f KB; lines collected %.1f ms, %zu rows, %zu calls\n",
		mb, (double)(t[1] - t[0]) / 1e6, (double)size / 1024, (double)(t[2] - t[1]) / 1e6,
		lines.row_count, lines.node_count);
	assert_true((double)(t[1] - t[0]) / 1e6 < 200 * mb);
	assert_true((double)(t[2] - t[1]) / 1e6 < 400 * mb);
	free(out);
	rows_release(&r);
	lineset_release(&lines);
	free(code);
	gofile_close(&f);
	free(path);
	gotest_close(&g);
}
