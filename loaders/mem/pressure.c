/* SPDX-License-Identifier: Apache-2.0 */
#include "loaders/mem/pressure.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define TEXT_MAX 512

int pressure_parse(const char *text, size_t len, uint64_t *stalled_us)
{
	char line[TEXT_MAX];
	unsigned long long total;
	const char *at;

	if (len >= sizeof(line))
		return -EBADMSG;
	memcpy(line, text, len);
	line[len] = '\0';
	at = strncmp(line, "some ", 5) ? NULL : strstr(line, "total=");
	if (!at || sscanf(at, "total=%llu", &total) != 1)
		return -EBADMSG;
	*stalled_us = total;
	return 0;
}

/* The kernel refuses to read it where PSI is switched off. */
static int stalled(const struct pressure *p, uint64_t *us)
{
	char text[TEXT_MAX];
	ssize_t n = pread(p->fd, text, sizeof(text), 0);

	return n < 0 ? -errno : pressure_parse(text, (size_t)n, us);
}

void pressure_open(struct pressure *p)
{
	*p = (struct pressure){.fd = open("/proc/pressure/memory", O_RDONLY | O_CLOEXEC)};
	if (p->fd >= 0 && stalled(p, &p->stalled_us))
		pressure_close(p);
}

void pressure_close(struct pressure *p)
{
	if (p->fd >= 0)
		close(p->fd);
	p->fd = -1;
}

bool pressure_is(struct pressure *p, int64_t now_ns)
{
	uint64_t us = p->stalled_us;

	if (p->fd < 0 || stalled(p, &us))
		return false;
	if (us != p->stalled_us)
		p->last_ns = now_ns;
	p->stalled_us = us;
	return p->last_ns && now_ns - p->last_ns < PRESSURE_OVER_NS;
}
