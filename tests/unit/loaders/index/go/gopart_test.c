/* SPDX-License-Identifier: Apache-2.0 */
/* The index's GO section, compared with `go version` and `go tool nm` of each Go on this machine.
 */
#include "schema/base/array.h"
#include "tests/unit/loaders/index/go/gotest.h"

#include "loaders/index/go/gopart.h"
#include "schema/image/go.h"

static const char source[] =
	"package main\n"
	"import (\"fmt\"; \"runtime\"; \"runtime/pprof\")\n"
	"func main() { fmt.Println(runtime.Version(), len(pprof.Profiles())) }\n";

static struct image_go_record go_of(const char *path)
{
	cleanup_fd int fd = open(path, O_RDONLY | O_CLOEXEC);
	struct image_go_record r;
	struct made m = {0};

	assert_true(fd >= 0);
	m.rc = indexer_run_fd(fd, NULL, &m.r, NULL);
	made_open(&m);
	assert_non_null(m.img);
	assert_true(image_go(m.img, &r));
	made_release(&m);
	return r;
}

/* The first word of a command's output. */
static void word_of(const char *command, char *out, size_t size)
{
	FILE *p = popen(command, "r");
	char format[16];

	assert_non_null(p);
	snprintf(format, sizeof(format), "%%%zus", size - 1);
	*out = 0;
	assert_true(fscanf(p, format, out) == 1 || !*out);
	pclose(p);
}

/* What `go tool nm` says of a symbol of the runtime; 0: nothing. */
static uint64_t nm_of(const struct gotest *g, size_t i, const char *path, const char *name)
{
	cleanup_strbuf struct strbuf cmd = STRBUF_INIT;
	char word[64];

	gotest_env(&cmd, g->go[i], false);
	strbuf_addf(&cmd, "'%s' tool nm '%s' 2>/dev/null | awk '$3 == \"runtime.%s\" { print $1 }'",
		    g->go[i], path, name);
	word_of(strbuf_str(&cmd), word, sizeof(word));
	return strtoull(word, NULL, 16);
}

static void version_of(const struct gotest *g, size_t i, char *out, size_t size)
{
	cleanup_strbuf struct strbuf cmd = STRBUF_INIT;

	gotest_env(&cmd, g->go[i], false);
	strbuf_addf(&cmd, "'%s' env GOVERSION", g->go[i]);
	word_of(strbuf_str(&cmd), out, size);
	if (*out)
		return;
	strbuf_reset(&cmd); /* before Go 1.16 */
	gotest_env(&cmd, g->go[i], false);
	strbuf_addf(&cmd, "'%s' version | cut -d' ' -f3", g->go[i]);
	word_of(strbuf_str(&cmd), out, size);
}

static const struct {
	const char *name;
	enum image_go_variable number;
} variables[] = {
	{"mbuckets", IMAGE_GO_MBUCKETS},
	{"xbuckets", IMAGE_GO_XBUCKETS},
	{"bbuckets", IMAGE_GO_BBUCKETS},
	{"MemProfileRate", IMAGE_GO_MEM_PROFILE_RATE},
	{"blockprofilerate", IMAGE_GO_BLOCK_PROFILE_RATE},
	{"mutexprofilerate", IMAGE_GO_MUTEX_PROFILE_RATE},
	{"mProfCycle", IMAGE_GO_MPROF_CYCLE},
	{"mProf", IMAGE_GO_MPROF},
	{"allgs", IMAGE_GO_ALLGS},
	{"allglen", IMAGE_GO_ALLGLEN},
	{"allgptr", IMAGE_GO_ALLGPTR},
	{"buildVersion", IMAGE_GO_BUILD_VERSION},
	{"ticks", IMAGE_GO_TICKS},
};

/* What follows from the code alone, without symbols. */
#define BY_CODE                                                                                \
	(1u << IMAGE_GO_MBUCKETS | 1u << IMAGE_GO_XBUCKETS | 1u << IMAGE_GO_BBUCKETS |         \
	 1u << IMAGE_GO_MEM_PROFILE_RATE | 1u << IMAGE_GO_MPROF_CYCLE | 1u << IMAGE_GO_MPROF | \
	 1u << IMAGE_GO_TICKS)

static char *stripped_copy(const char *path)
{
	cleanup_strbuf struct strbuf out = STRBUF_INIT;
	cleanup_strbuf struct strbuf cmd = STRBUF_INIT;

	strbuf_addf(&out, "%s-stripped", path);
	strbuf_addf(&cmd, "strip -s -o '%s' '%s'", strbuf_str(&out), path);
	assert_int_equal(gotest_shell(strbuf_str(&cmd)), 0);
	return mem_strdup(strbuf_str(&out));
}

static void check_program(const struct gotest *g, size_t i, const char *flags)
{
	char version[64], *plain, *stripped;
	struct image_go_record r, s;
	size_t known = 0;

	version_of(g, i, version, sizeof(version));
	plain = gotest_build(g, i, flags, false);
	assert_non_null(plain);
	stripped = stripped_copy(plain);
	r = go_of(plain);
	s = go_of(stripped);
	assert_string_equal(r.version, version);
	assert_string_equal(s.version, version);
	assert_int_equal(r.generation, s.generation);
	assert_true(r.text_start == nm_of(g, i, plain, "text"));
	assert_true(r.text_end <= nm_of(g, i, plain, "etext") + 64 && r.text_end > r.text_start);
	assert_true(r.pclntab == nm_of(g, i, plain, "pclntab"));
	assert_true(r.module_data == nm_of(g, i, plain, "firstmoduledata"));
	assert_true(s.pclntab && s.module_data);
	for (size_t k = 0; k < ARRAY_SIZE(variables); k++) {
		assert_true(r.variables[variables[k].number] ==
			    nm_of(g, i, plain, variables[k].name));
		assert_true(s.variables[variables[k].number] ==
			    (BY_CODE & 1u << variables[k].number ?
				     r.variables[variables[k].number] :
				     0));
		known += r.variables[variables[k].number] != 0;
	}
	assert_int_equal(r.from_code, 0);
	assert_true(s.from_code && !(s.from_code & ~(uint64_t)BY_CODE));
	assert_true(r.bss_start && r.bss_start == s.bss_start &&
		    r.bss_start <= nm_of(g, i, plain, "bss"));
	assert_true(r.bss_end == s.bss_end && r.bss_end == nm_of(g, i, plain, "enoptrbss"));
	assert_string_equal(r.main_path, "example.org/gotest");
	assert_string_equal(s.main_path, "example.org/gotest");
	assert_true(known >= 9 && r.variables[IMAGE_GO_MBUCKETS] &&
		    r.variables[IMAGE_GO_MEM_PROFILE_RATE]);
	free(plain);
	free(stripped);
}

TEST(a_go_program_tells_its_version_and_its_runtime_s_variables)
{
	struct gotest g;

	if (!gotest_open(&g, source)) {
		skip_missing("go");
	}
	for (size_t i = 0; i < g.count; i++) {
		check_program(&g, i, "");
		check_program(&g, i, "-buildmode=pie");
	}
	gotest_close(&g);
}

TEST(the_text_about_modules_tells_module_and_cgo)
{
	static const char mark[] = "0123456789abcdef";
	static const char lines[] =
		"path\texample.org/server/cmd\nmod\texample.org/server\tv1.2.3\th1:x=\ndep\tgolang.org/x/net\tv0.1.0\n"
		"build\t-compiler=gc\nbuild\tCGO_ENABLED=1";
	struct image_go_record r = {0}, none = {0};
	char text[512];
	const int len = snprintf(text, sizeof(text), "%s%s%s", mark, lines, mark);

	gopart_modules(text, (size_t)len, &r);
	assert_string_equal(r.main_path, "example.org/server");
	assert_string_equal(r.main_version, "v1.2.3");
	assert_int_equal(r.flags, IMAGE_GO_CGO);
	r = none;
	gopart_modules("0123456789abcdefpath\tcommand-line-arguments\n0123456789abcdef", 60, &r);
	assert_string_equal(r.main_path, "command-line-arguments");
	assert_int_equal(r.flags, 0);
	r = none;
	gopart_modules(text, 31, &r);
	assert_memory_equal(&r, &none, sizeof(r));
}

TEST(build_information_that_is_cut_tells_nothing)
{
	uint8_t b[64] = "\xff Go buildinf:\x08\x02";
	struct gopart_build found;

	b[32] = 7;
	memcpy(b + 33, "go1.2.3", 7);
	assert_true(gopart_build_find(b, sizeof(b), &found));
	assert_int_equal(found.len, 7);
	assert_memory_equal(found.version, "go1.2.3", 7);
	assert_true(gopart_build_find(b, 40, &found));
	assert_false(gopart_build_find(b, 39, &found));
	b[15] = 0; /* a pointer, which is 0 */
	assert_false(gopart_build_find(b, sizeof(b), &found));
	b[16] = 0x10;
	assert_true(gopart_build_find(b, sizeof(b), &found));
	assert_int_equal(found.pointer, 0x10);
	b[14] = 3;
	assert_false(gopart_build_find(b, sizeof(b), &found));
	assert_false(gopart_build_find(b, 0, &found));
}
