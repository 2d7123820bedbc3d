/* SPDX-License-Identifier: Apache-2.0 */
#include "loaders/lib/bpf/run/progress.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "schema/base/mem.h"

#define PROGRESS_WAIT_MS 500

void progress_init(struct progress *p, int fd)
{
	*p = (struct progress){.fd = fd};
	if (fd < 0)
		return;
	fcntl(fd, F_SETFD, FD_CLOEXEC);
	fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) | O_NONBLOCK);
}

/* Whole lines only: finish a line that was begun, or give up the reader. */
static void line_write(struct progress *p, const char *line, size_t len, bool must)
{
	size_t done = 0;

	while (done < len) {
		struct pollfd pfd = {.fd = p->fd, .events = POLLOUT};
		ssize_t n = write(p->fd, line + done, len - done);

		if (n > 0) {
			done += (size_t)n;
			continue;
		}
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0 && errno != EAGAIN) {
			p->gone = true;
			return;
		}
		if (!must && !done)
			return;
		if (poll(&pfd, 1, PROGRESS_WAIT_MS) <= 0) {
			p->gone = done > 0;
			return;
		}
	}
}

void progress_send(struct progress *p, json_t *line, bool must)
{
	char *text;
	size_t len;

	if (p->fd >= 0 && !p->gone) {
		text = json_dumps(line, JSON_COMPACT | JSON_REAL_PRECISION(15));
		if (text) {
			len = strlen(text);
			text = mem_realloc(text, len + 1);
			text[len] = '\n';
			line_write(p, text, len + 1, must);
			free(text);
		}
	}
	json_decref(line);
}
