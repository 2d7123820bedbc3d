/* SPDX-License-Identifier: Apache-2.0 */
#include "supervisor/children/pass.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/capability.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "schema/base/sibling.h"
#include "supervisor/limits/load_limit.h"

#define OUTPUT_MAX  (4u << 20)
#define MEMORY_MOST (512ull << 20)
/* For files of a store that others wrote, and for giving new ones to the store's group. Root has
 * these; the unit's user has none of them. */
#define CAPS (1ull << CAP_CHOWN | 1ull << CAP_DAC_OVERRIDE | 1ull << CAP_FOWNER)

void pass_init(struct pass *p)
{
	*p = (struct pass){.fd = -1};
}

void pass_release(struct pass *p)
{
	if (p->fd >= 0)
		close(p->fd);
	p->fd = -1;
	strbuf_release(&p->out);
}

int pass_start(struct pass *p, const char *program, char **argv, struct err *e)
{
	char path[PATH_MAX];
	struct child_fd fds[1];
	int ends[2], rc = sibling_find(program, path, e);

	if (!rc && pipe2(ends, O_CLOEXEC) < 0)
		rc = err_set(e, -errno, EXIT_RUNTIME, "cannot make a pipe: %s", strerror(errno));
	if (rc)
		return rc;
	argv[0] = path;
	fds[0] = (struct child_fd){ends[1], 1};
	rc = child_start(&(struct child_opts){.argv = argv,
					      .fds = fds,
					      .n_fds = 1,
					      .caps = CAPS,
					      .memory_bytes = MEMORY_MOST},
			 &p->pid, e);
	close(ends[1]);
	fcntl(ends[0], F_SETFL, O_NONBLOCK);
	strbuf_reset(&p->out);
	p->fd = ends[0];
	return rc;
}

void pass_read(struct pass *p)
{
	char bytes[8192];
	ssize_t n;

	while (p->fd >= 0 && (n = read(p->fd, bytes, sizeof(bytes))) != 0) {
		if (n < 0)
			return;
		if (p->out.len < OUTPUT_MAX)
			strbuf_add(&p->out, bytes, (size_t)n);
	}
	if (p->fd >= 0)
		close(p->fd);
	p->fd = -1;
}

uint64_t pass_cpu_ns(const struct pass *p)
{
	return p->ended_ns + (p->pid ? (uint64_t)process_cpu_ns(p->pid) : 0);
}

json_t *pass_ended(struct pass *p, int status, int *code)
{
	pass_read(p);
	p->pid = 0;
	*code = WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
	return *code ? NULL : json_loadb(strbuf_str(&p->out), p->out.len, 0, NULL);
}
