/* SPDX-License-Identifier: Apache-2.0 */
#include "supervisor/children/mapsowner.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "loaders/lib/host/maps/mapslink.h"
#include "loaders/lib/host/maps/mapspack.h"
#include "schema/base/clock.h"
#include "supervisor/control/log_lines.h"

#define SOCKET_FD 3
#define TABLES_FD 4

void mapsowner_init(struct mapsowner *m)
{
	memset(m, 0, sizeof(*m));
	service_init(&m->service, "maps", NULL);
	m->sock = -1;
	for (int i = 0; i < MP_TABLES_N; i++)
		m->tables[i] = -1;
}

static void close_all(int *fds, int n)
{
	for (int i = 0; i < n; i++) {
		if (fds[i] >= 0)
			close(fds[i]);
		fds[i] = -1;
	}
}

void mapsowner_release(struct mapsowner *m)
{
	mapsowner_hang_up(m);
	close_all(m->tables, MP_TABLES_N);
	service_release(&m->service);
}

void mapsowner_hang_up(struct mapsowner *m)
{
	close_all(&m->sock, 1);
}

void mapsowner_start(struct mapsowner *m, const char *store, const char *socket, const char *args,
		     unsigned int images_mb, bool dotnet, uint64_t caps)
{
	char megabytes[16];
	char *argv[16] = {NULL,       "--fd",         "3",      "--store",    (char *)store,
			  "--socket", (char *)socket, "--args", (char *)args, "--images-mb",
			  megabytes};
	struct child_fd fds[1 + MP_TABLES_N];
	int pair[2], n = 11;
	size_t n_fds = 0;

	snprintf(megabytes, sizeof(megabytes), "%u", images_mb);
	mapsowner_hang_up(m);
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair)) {
		log_line(LOG_LEVEL_ERROR, "sonded", "cannot make a socket: %s", strerror(errno));
		return; /* it stays as it is: tried again at the next turn */
	}
	fds[n_fds++] = (struct child_fd){pair[1], SOCKET_FD};
	for (int i = 0; i < MP_TABLES_N && m->tables[i] >= 0; i++)
		fds[n_fds++] = (struct child_fd){m->tables[i], TABLES_FD + i};
	if (dotnet)
		argv[n++] = "--dotnet";
	if (n_fds > 1) {
		argv[n++] = "--tables-fd";
		argv[n++] = "4";
	}
	service_start(&m->service, argv, fds, n_fds, caps);
	close(pair[1]);
	m->sock = pair[0];
	if (!m->service.pid)
		mapsowner_hang_up(m);
}

/* A sonde-maps that took over the tables continues their generation; one that made new tables
 * starts again. */
static void on_hello(struct mapsowner *m, const struct mp_hello *h)
{
	if (h->generation && m->generation && h->generation <= m->generation) {
		log_line(LOG_LEVEL_WARN, "sonded",
			 "sonde-maps created new tables: restarting the loaders");
		m->replaced = true;
	}
	m->generation = h->generation;
	service_ready(&m->service);
}

static void on_tables(struct mapsowner *m, int fds[MP_FDS_MAX])
{
	for (int i = 0; i < MP_TABLES_N; i++)
		if (fds[i] < 0)
			return;
	close_all(m->tables, MP_TABLES_N);
	for (int i = 0; i < MP_TABLES_N; i++) {
		m->tables[i] = fds[i];
		fds[i] = -1;
	}
}

static int take_packet(struct mapsowner *m, size_t len, int fds[MP_FDS_MAX])
{
	struct mapspack_msg msg;
	size_t pos = 0;
	int rc;

	while ((rc = mapspack_next(m->packet, len, &pos, &msg)) == 1) {
		if (msg.type == MP_HELLO)
			on_hello(m, &msg.m.hello);
		else if (msg.type == MP_TABLES)
			on_tables(m, fds);
		else if (msg.type == MP_COST) {
			m->service.told_ns = msg.m.cost.cpu_ns + msg.m.cost.index_cpu_ns;
			m->service.helpers_ns = msg.m.cost.index_cpu_ns;
			m->service.bpf_ns = msg.m.cost.bpf_ns;
			m->service.map_bytes = msg.m.cost.map_bytes;
		}
	}
	return rc;
}

void mapsowner_read(struct mapsowner *m)
{
	int fds[MP_FDS_MAX], rc = 1;
	size_t len;

	while (m->sock >= 0 && rc == 1) {
		rc = maps_link_receive(m->sock, m->packet, sizeof(m->packet), &len, fds);
		if (rc == 1) {
			m->service.heard_ns = clock_mono_ns();
			rc = take_packet(m, len, fds) < 0 ? -EPROTO : 1;
		}
		if (rc)
			close_all(fds, MP_FDS_MAX);
		if (rc < 0)
			mapsowner_hang_up(m); /* it has ended, or will now */
	}
}
