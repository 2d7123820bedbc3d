/* SPDX-License-Identifier: Apache-2.0 */
#include "loaders/maps/world/procevents.h"

#include <linux/cn_proc.h>
#include <linux/connector.h>
#include <linux/netlink.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "schema/base/idmap.h"
#include "schema/base/mem.h"

#define CODES_MAX    8192 /* not asked for; beyond this all are dropped */
#define BUFFER_BYTES (1 << 20)
#define CODE_KNOWN   (1ull << 32)

struct procevents {
	int fd;
	struct idmap codes; /* by tgid: CODE_KNOWN and the code; 0: it has been asked for */
	uint32_t n;
};

static bool subscribe(int fd)
{
	struct sockaddr_nl to = {.nl_family = AF_NETLINK, .nl_groups = CN_IDX_PROC};
	int bytes = BUFFER_BYTES;
	const uint32_t op = PROC_CN_MCAST_LISTEN;
	struct {
		struct nlmsghdr head;
		char rest[sizeof(struct cn_msg) + sizeof(op)];
	} m = {.head = {.nlmsg_len = sizeof(m),
			.nlmsg_type = NLMSG_DONE,
			.nlmsg_pid = (uint32_t)getpid()}};
	const struct cn_msg msg = {.id = {.idx = CN_IDX_PROC, .val = CN_VAL_PROC},
				   .len = sizeof(op)};

	memcpy(m.rest, &msg, sizeof(msg));
	memcpy(m.rest + sizeof(msg), &op, sizeof(op));
	setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &bytes, sizeof(bytes));
	return !bind(fd, (struct sockaddr *)&to, sizeof(to)) &&
	       send(fd, &m, sizeof(m), 0) == sizeof(m);
}

struct procevents *procevents_open(void)
{
	int fd = socket(AF_NETLINK, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, NETLINK_CONNECTOR);
	struct procevents *p;

	if (fd < 0 || !subscribe(fd)) {
		if (fd >= 0)
			close(fd);
		return NULL;
	}
	p = mem_alloc(sizeof(*p));
	p->fd = fd;
	return p;
}

void procevents_close(struct procevents *p)
{
	if (!p)
		return;
	close(p->fd);
	idmap_release(&p->codes);
	free(p);
}

bool procevents_parse(const void *bytes, size_t len, uint32_t *tgid, uint32_t *code)
{
	const size_t at = sizeof(struct nlmsghdr) + sizeof(struct cn_msg),
		     need = offsetof(struct proc_event, event_data) + 12;
	struct proc_event ev = {0};
	struct cn_msg msg;

	if (len < at + need)
		return false;
	memcpy(&msg, (const char *)bytes + sizeof(struct nlmsghdr), sizeof(msg));
	if (msg.id.idx != CN_IDX_PROC || msg.id.val != CN_VAL_PROC || msg.len < need)
		return false;
	memcpy(&ev, (const char *)bytes + at, len - at < sizeof(ev) ? len - at : sizeof(ev));
	if (ev.what != PROC_EVENT_EXIT ||
	    ev.event_data.exit.process_pid != ev.event_data.exit.process_tgid)
		return false;
	*tgid = (uint32_t)ev.event_data.exit.process_tgid;
	*code = ev.event_data.exit.exit_code;
	return true;
}

void procevents_read(struct procevents *p)
{
	struct sockaddr_nl from;
	socklen_t size = sizeof(from);
	uint32_t tgid, code;
	char bytes[512];
	ssize_t n;

	while (p && (n = recvfrom(p->fd, bytes, sizeof(bytes), 0, (struct sockaddr *)&from,
				  &size)) > 0) {
		bool kernel = size == sizeof(from) && !from.nl_pid;

		size = sizeof(from);
		if (!kernel || !procevents_parse(bytes, (size_t)n, &tgid, &code))
			continue;
		if (++p->n > CODES_MAX) {
			idmap_clear(&p->codes);
			p->n = 1;
		}
		idmap_set(&p->codes, tgid, CODE_KNOWN | code);
	}
}

bool procevents_take(struct procevents *p, uint32_t tgid, uint32_t *code)
{
	uint64_t value;

	if (!p || !idmap_get(&p->codes, tgid, &value) || !(value & CODE_KNOWN))
		return false;
	*code = (uint32_t)value;
	idmap_set(&p->codes, tgid, 0);
	return true;
}
