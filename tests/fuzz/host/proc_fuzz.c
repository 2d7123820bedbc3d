/* SPDX-License-Identifier: Apache-2.0 */
/*
 * proc_fuzz: the parsers of /proc files take any bytes; what they borrow lies within them.
 * covers: loaders/lib/host/proc/proc.c
 */
#include <limits.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "loaders/lib/host/proc/proc.h"

int LLVMFuzzerInitialize(int *argc, char ***argv);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
	uint32_t pid = (uint32_t)getpid();
	struct proc_status status;
	struct proc_stat st;
	char path[PATH_MAX];

	(void)argc;
	(void)argv;
	if (proc_read_stat(pid, &st) || proc_read_status(pid, &status) ||
	    proc_read_cgroup(pid, path, sizeof(path)) ||
	    proc_readlink(pid, "exe", path, sizeof(path)) || st.pid != pid || status.tgid != pid)
		abort();
	return 0;
}

static void inside(const char *data, size_t len, const char *p, size_t n)
{
	if (p && (p < data || n > len || p + n > data + len))
		abort();
}

static void maps(const char *data, size_t len)
{
	struct proc_map m;
	size_t pos = 0;

	while (proc_next_map(data, len, &pos, &m)) {
		char *out;

		inside(data, len, m.path, m.path_len);
		if (m.end <= m.start || pos > len)
			abort();
		out = malloc(m.path_len + 1);
		if (m.path_len && proc_unescape(m.path, m.path_len, out) > m.path_len)
			abort();
		free(out);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len)
{
	const char *data = (const char *)bytes, *path;
	struct proc_status status;
	struct proc_cgroup cg;
	struct proc_stat st;
	size_t n;

	if (!proc_parse_stat(data, len, &st) && memchr(st.comm, 0, sizeof(st.comm)) == NULL)
		abort();
	proc_parse_status(data, len, &status);
	proc_parse_btime(data, len);
	if (!proc_parse_cgroup(data, len, &cg)) {
		path = proc_cgroup_path(&cg, &n);
		if (n > 1)
			inside(data, len, path, n);
		if (path[0] != '/')
			abort();
	}
	maps(data, len);
	return 0;
}
