/* SPDX-License-Identifier: Apache-2.0 */
#include "loaders/offcpu/quota.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "loaders/lib/bpf/family.h"
#include "loaders/lib/host/names/naming.h"
#include "schema/base/array.h"
#include "schema/base/cleanup.h"
#include "schema/base/clock.h"
#include "schema/base/mem.h"
#include "schema/base/strbuf.h"

#define GROUPS_MAX 4096
#define DEPTH_MAX  16
#define LOOK_NS    (2 * NSEC_PER_SEC) /* the tree of cgroups is walked this often */

static ssize_t file_read(const char *path, char *buf, size_t size)
{
	cleanup_fd int fd = open(path, O_RDONLY | O_CLOEXEC);

	return fd < 0 ? -1 : read(fd, buf, size);
}

/* The hierarchy whose cpu.stat reports quotas. */
void quota_init(struct quota *q)
{
	static const char *const mounts[] = {"/sys/fs/cgroup/cpu,cpuacct", "/sys/fs/cgroup/cpu",
					     "/sys/fs/cgroup"};
	struct stat st;

	*q = (struct quota){0};
	for (size_t i = 0; i < ARRAY_SIZE(mounts) && !q->root[0]; i++) {
		char path[600];

		snprintf(path, sizeof(path), "%s/%s", mounts[i],
			 i == 2 ? "cgroup.controllers" : "cpu.stat");
		if (!stat(path, &st))
			snprintf(q->root, sizeof(q->root), "%s", mounts[i]);
	}
}

void quota_release(struct quota *q)
{
	for (size_t i = 0; i < q->n; i++)
		free(q->groups[i].path);
	free(q->groups);
}

/* `since`: it is newer than the last look, and has counted nothing before. */
static void group_look(struct quota *q, const char *path, bool since)
{
	for (size_t i = 0; i < q->n; i++)
		if (!strcmp(q->groups[i].path, path)) {
			q->groups[i].seen = true;
			return;
		}
	if (q->n >= GROUPS_MAX)
		return;
	mem_grow(q->groups, q->n, q->cap);
	q->groups[q->n++] =
		(struct quota_group){.path = mem_strdup(path), .known = since, .seen = true};
}

static bool group_stat(const struct quota *q, const char *path, struct store_throttle *out)
{
	cleanup_strbuf struct strbuf full = STRBUF_INIT;
	char text[1024];
	ssize_t n;

	strbuf_addf(&full, "%s%s/cpu.stat", q->root, path);
	n = file_read(strbuf_str(&full), text, sizeof(text));
	return n > 0 && quota_parse_cpustat(text, (size_t)n, out);
}

static void tree_walk(struct quota *q, struct strbuf *path, int depth, bool since)
{
	cleanup_strbuf struct strbuf full = STRBUF_INIT;
	cleanup_dir DIR *dir = NULL;
	struct store_throttle t;
	size_t len = path->len;
	struct dirent *de;

	strbuf_addf(&full, "%s%s", q->root, strbuf_str(path));
	if (len && group_stat(q, strbuf_str(path), &t))
		group_look(q, strbuf_str(path), since);
	dir = depth < DEPTH_MAX ? opendir(strbuf_str(&full)) : NULL;
	while (dir && (de = readdir(dir))) {
		if (de->d_type != DT_DIR || de->d_name[0] == '.')
			continue;
		strbuf_addf(path, "/%s", de->d_name);
		tree_walk(q, path, depth + 1, since);
		path->len = len;
		path->buf[len] = '\0';
	}
}

static void tree_look(struct quota *q, int64_t now_ns)
{
	cleanup_strbuf struct strbuf path = STRBUF_INIT;

	bool since = q->looked_ns != 0;

	if (!q->root[0] || (since && now_ns - q->looked_ns < LOOK_NS))
		return;
	q->looked_ns = now_ns;
	for (size_t i = 0; i < q->n; i++)
		q->groups[i].seen = false;
	tree_walk(q, &path, 0, since);
	for (size_t i = 0; i < q->n;) {
		if (q->groups[i].seen) {
			i++;
			continue;
		}
		free(q->groups[i].path);
		q->groups[i] = q->groups[--q->n];
	}
}

static void group_read(struct quota *q, struct quota_group *g, struct family_host *h,
		       int64_t utc_ns)
{
	struct store_throttle now, more;

	if (!group_stat(q, g->path, &now))
		return;
	more = (struct store_throttle){now.periods - g->before.periods,
				       now.throttled - g->before.throttled,
				       now.throttled_ns - g->before.throttled_ns};
	if (h && g->known && now.periods > g->before.periods &&
	    now.throttled >= g->before.throttled && now.throttled_ns >= g->before.throttled_ns)
		store_throttle(h->store, h->run, utc_ns,
			       naming_excludes_cgroup(h->naming, g->path) ? NAMING_EXCLUDED :
									    g->path,
			       &more);
	g->before = now;
	g->known = true;
}

static void steal_read(struct quota *q, struct family_host *h, int64_t utc_ns)
{
	struct store_steal now, more;
	char text[512];
	ssize_t n = file_read("/proc/stat", text, sizeof(text));

	if (n <= 0 || !quota_parse_stat(text, (size_t)n, sysconf(_SC_CLK_TCK), &now))
		return;
	more = (struct store_steal){now.steal_ns - q->steal.steal_ns,
				    now.idle_ns - q->steal.idle_ns, now.cpu_ns - q->steal.cpu_ns};
	if (h && q->read_ns && now.steal_ns >= q->steal.steal_ns &&
	    now.idle_ns >= q->steal.idle_ns && now.cpu_ns >= q->steal.cpu_ns)
		store_steal(h->store, h->run, utc_ns, &more);
	q->steal = now;
}

void quota_read(struct quota *q, struct family_host *h, int64_t now_ns)
{
	int64_t utc_ns = (q->read_ns ? (q->read_ns + now_ns) / 2 : now_ns) + (h ? h->offset_ns : 0);

	tree_look(q, now_ns);
	for (size_t i = 0; i < q->n; i++)
		group_read(q, &q->groups[i], h, utc_ns);
	steal_read(q, h, utc_ns);
	q->read_ns = now_ns;
}
