/* SPDX-License-Identifier: Apache-2.0 */
#include "loaders/lib/host/budget/cpushare.h"

#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

#include "schema/base/cleanup.h"

void cpushare_init(struct cpushare *s, int64_t now_ns, int64_t idle_ns)
{
	*s = (struct cpushare){.left_ns = CPUSHARE_SAVED_NS, .now_ns = now_ns, .idle_ns = idle_ns};
}

void cpushare_tick(struct cpushare *s, int64_t now_ns, int64_t idle_ns)
{
	if (now_ns > s->now_ns)
		s->left_ns += (now_ns - s->now_ns) / 100 * CPUSHARE_PERCENT;
	if (idle_ns > s->idle_ns)
		s->left_ns += (idle_ns - s->idle_ns) / 2;
	if (s->left_ns > CPUSHARE_SAVED_NS)
		s->left_ns = CPUSHARE_SAVED_NS;
	s->now_ns = now_ns;
	s->idle_ns = idle_ns;
}

void cpushare_spend(struct cpushare *s, int64_t cpu_ns)
{
	s->left_ns -= cpu_ns;
}

bool cpushare_open(const struct cpushare *s)
{
	return s->left_ns > 0;
}

bool cpushare_is_full(const struct cpushare *s)
{
	return s->left_ns == CPUSHARE_SAVED_NS;
}

int64_t cpushare_idle_ns(void)
{
	cleanup_fd int fd = open("/proc/uptime", O_RDONLY | O_CLOEXEC);
	unsigned long long up_s, idle_s, idle_cs;
	char text[64];
	ssize_t n = fd < 0 ? -1 : read(fd, text, sizeof(text) - 1);

	if (n <= 0)
		return 0;
	text[n] = 0;
	if (sscanf(text, "%llu.%*u %llu.%llu", &up_s, &idle_s, &idle_cs) != 3)
		return 0;
	return (int64_t)idle_s * 1000000000 + (int64_t)idle_cs * 10000000;
}
