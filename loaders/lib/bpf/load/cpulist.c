/* SPDX-License-Identifier: Apache-2.0 */
#include "loaders/lib/bpf/load/cpulist.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "schema/base/cleanup.h"

static int number(const char *s, size_t len, size_t *pos, uint32_t *out)
{
	uint32_t v = 0;
	size_t at = *pos;

	while (at < len && s[at] >= '0' && s[at] <= '9') {
		v = v * 10 + (uint32_t)(s[at++] - '0');
		if (v >= CPULIST_MAX)
			return -EINVAL;
	}
	if (at == *pos)
		return -EINVAL;
	*pos = at;
	*out = v;
	return 0;
}

int cpulist_parse(const char *s, size_t len, struct cpulist *out)
{
	struct cpulist list = {0};
	size_t pos = 0;

	while (len && s[len - 1] == '\n')
		len--;
	while (pos < len) {
		uint32_t from, to;

		if (number(s, len, &pos, &from))
			return -EINVAL;
		to = from;
		if (pos < len && s[pos] == '-' && (pos++, number(s, len, &pos, &to)))
			return -EINVAL;
		if (to < from)
			return -EINVAL;
		for (; from <= to; from++) {
			list.n += !list.has[from];
			list.has[from] = true;
			list.last = from > list.last ? from : list.last;
		}
		if (pos < len && (s[pos++] != ',' || pos == len))
			return -EINVAL;
	}
	*out = list;
	return 0;
}

int cpulist_online(struct cpulist *out)
{
	cleanup_fd int fd = open("/sys/devices/system/cpu/online", O_RDONLY | O_CLOEXEC);
	char buf[4096];
	ssize_t n;

	if (fd < 0)
		return -errno;
	n = read(fd, buf, sizeof(buf));
	return n < 0 ? -errno : cpulist_parse(buf, (size_t)n, out);
}
