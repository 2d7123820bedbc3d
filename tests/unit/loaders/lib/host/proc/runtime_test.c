/* SPDX-License-Identifier: Apache-2.0 */
/* runtime: which language runtime a process has, on a table of what real programs of Debian, of
 * python.org's images and of Microsoft's have mapped. */
#include <string.h>

#include "loaders/lib/host/proc/runtime.h"
#include "schema/base/array.h"
#include "tests/unit/test.h"

#define LD   "/usr/lib/x86_64-linux-gnu/ld-linux-x86-64.so.2"
#define CPP  "/usr/lib/x86_64-linux-gnu/libstdc++.so.6.0.30"
#define MUSL "/lib/ld-musl-x86_64.so.1"

static const struct row {
	const char *exe, *paths[4], *go, *lang, *version;
	enum store_linking linking;
	enum store_libc libc;
} ROWS[] = {
	{"/usr/bin/python3.11", {LD}, NULL, "python", "python3.11", STORE_DYNAMIC, STORE_GLIBC},
	{"/usr/local/bin/python3.12",
	 {"/usr/local/lib/libpython3.12.so.1.0", LD},
	 NULL,
	 "python",
	 "python3.12",
	 STORE_DYNAMIC,
	 STORE_GLIBC},
	{"/opt/x/bin/python3", {MUSL}, NULL, "python", "python3", STORE_DYNAMIC, STORE_MUSL},
	{"/opt/x/bin/python",
	 {"/opt/x/lib/libpython3.9.so.1.0", LD, CPP},
	 NULL,
	 "python",
	 "python3.9",
	 STORE_DYNAMIC,
	 STORE_GLIBC},
	{"/usr/bin/pypy3", {LD}, NULL, "python", "pypy3", STORE_DYNAMIC, STORE_GLIBC},
	{"/usr/bin/gdb",
	 {LD, CPP, "/usr/lib/x86_64-linux-gnu/libpython3.11.so.1.0"},
	 NULL,
	 "c++",
	 "c++",
	 STORE_DYNAMIC,
	 STORE_GLIBC},
	{"/usr/bin/uwsgi-core",
	 {LD, "/usr/lib/x86_64-linux-gnu/libpython3.11.so.1.0"},
	 NULL,
	 "python",
	 "python3.11",
	 STORE_DYNAMIC,
	 STORE_GLIBC},
	{"/usr/sbin/apache2",
	 {LD, "/usr/lib/apache2/modules/libphp8.2.so"},
	 NULL,
	 "php",
	 "php8.2",
	 STORE_DYNAMIC,
	 STORE_GLIBC},
	{"/usr/sbin/apache2", {LD}, NULL, "", "", STORE_DYNAMIC, STORE_GLIBC},
	{"/usr/sbin/php-fpm8.2", {LD, CPP}, NULL, "php", "php8.2", STORE_DYNAMIC, STORE_GLIBC},
	{"/usr/bin/ruby3.1",
	 {LD, "/usr/lib/x86_64-linux-gnu/libruby-3.1.so.3.1.2"},
	 NULL,
	 "ruby",
	 "ruby3.1",
	 STORE_DYNAMIC,
	 STORE_GLIBC},
	{"/usr/local/bin/ruby",
	 {LD, "/usr/local/lib/libruby.so.3.3.0"},
	 NULL,
	 "ruby",
	 "ruby3.3.0",
	 STORE_DYNAMIC,
	 STORE_GLIBC},
	{"/usr/bin/perl", {LD}, NULL, "perl", "perl", STORE_DYNAMIC, STORE_GLIBC},
	{"/usr/bin/perl",
	 {LD, "/usr/lib/x86_64-linux-gnu/libperl.so.5.36.0"},
	 NULL,
	 "perl",
	 "perl5.36.0",
	 STORE_DYNAMIC,
	 STORE_GLIBC},
	{"/usr/bin/node",
	 {LD, CPP, "/usr/lib/x86_64-linux-gnu/libnode.so.108"},
	 NULL,
	 "node",
	 "node",
	 STORE_DYNAMIC,
	 STORE_GLIBC},
	{"/usr/lib/jvm/java-17-openjdk-amd64/bin/java",
	 {LD, "/usr/lib/jvm/java-17-openjdk-amd64/lib/server/libjvm.so"},
	 NULL,
	 "java",
	 "java17",
	 STORE_DYNAMIC,
	 STORE_GLIBC},
	{"/opt/es/bin/elastic",
	 {LD, CPP, "/opt/es/jdk/lib/server/libjvm.so"},
	 NULL,
	 "java",
	 "java",
	 STORE_DYNAMIC,
	 STORE_GLIBC},
	{"/usr/bin/dotnet",
	 {LD, CPP, "/usr/share/dotnet/shared/Microsoft.NETCore.App/8.0.1/libcoreclr.so"},
	 NULL,
	 "dotnet",
	 "dotnet8.0.1",
	 STORE_DYNAMIC,
	 STORE_GLIBC},
	{"/app/jellyfin",
	 {LD, CPP, "/app/libcoreclr.so"},
	 NULL,
	 "dotnet",
	 "dotnet",
	 STORE_DYNAMIC,
	 STORE_GLIBC},
	{"/usr/lib/erlang/erts-13.1.5/bin/beam.smp",
	 {LD, CPP},
	 NULL,
	 "erlang",
	 "erlang",
	 STORE_DYNAMIC,
	 STORE_GLIBC},
	{"/usr/bin/dockerd", {LD}, "go1.19.8", "go", "go1.19.8", STORE_DYNAMIC, STORE_GLIBC},
	{"/usr/local/bin/caddy",
	 {0},
	 "go1.22.1",
	 "go",
	 "go1.22.1",
	 STORE_STATIC,
	 STORE_LIBC_UNKNOWN},
	{"/x", {0}, "", "go", "go", STORE_STATIC, STORE_LIBC_UNKNOWN},
	{"/usr/bin/python3-config", {LD}, NULL, "", "", STORE_DYNAMIC, STORE_GLIBC},
	{"/bin/busybox", {MUSL}, NULL, "", "", STORE_DYNAMIC, STORE_MUSL},
	{"/x/muslhello",
	 {"/usr/lib/x86_64-linux-musl/libc.so"},
	 NULL,
	 "",
	 "",
	 STORE_DYNAMIC,
	 STORE_MUSL},
	{"/bin/busybox", {0}, NULL, "", "", STORE_STATIC, STORE_LIBC_UNKNOWN},
	{"/bin/old",
	 {"/lib/x86_64-linux-gnu/ld-2.31.so"},
	 NULL,
	 "",
	 "",
	 STORE_DYNAMIC,
	 STORE_GLIBC},
};

TEST(what_a_process_is_a_program_of_is_told_by_what_it_has_mapped)
{
	for (size_t i = 0; i < ARRAY_SIZE(ROWS); i++) {
		const struct row *r = &ROWS[i];
		const char *paths[5] = {r->exe};
		struct runtime_facts f = {
			.exe = r->exe, .paths = paths, .n_paths = 1, .go_version = r->go};
		struct runtime out;

		for (size_t k = 0; k < 4 && r->paths[k]; k++)
			paths[f.n_paths++] = r->paths[k];
		runtime_tell(&f, &out);
		assert_string_equal(out.lang, r->lang);
		assert_string_equal(out.version, r->version);
		assert_int_equal(out.linking, r->linking);
		assert_int_equal(out.libc, r->libc);
	}
}

TEST(of_a_process_of_which_nothing_is_known_nothing_is_told)
{
	struct runtime_facts f = {.exe = ""};
	struct runtime out;

	runtime_tell(&f, &out);
	assert_string_equal(out.lang, "");
	assert_int_equal(out.linking, STORE_LINKING_UNKNOWN);
	assert_int_equal(out.libc, STORE_LIBC_UNKNOWN);
}
