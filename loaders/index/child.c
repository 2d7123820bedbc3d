/* SPDX-License-Identifier: Apache-2.0 */
#include "loaders/index/child.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

#include "loaders/index/indexer.h"
#include "loaders/lib/sandbox/sandbox.h"
#include "loaders/lib/host/maps/indexproto.h"
#include "schema/base/file/fdpass.h"

static int message_send(const struct index_msg *m)
{
	return fdpass_send(INDEX_FD_SOCKET, m, sizeof(*m), NULL, 0, 0);
}

/* The descriptor that came with the answer, or -1. */
static int answer_receive(void)
{
	struct index_msg m = {0};
	int fd;
	const ssize_t n = fdpass_take(INDEX_FD_SOCKET, &m, sizeof(m), &fd, 1, 0);

	if (fd >= 0 && (n < (ssize_t)offsetof(struct index_msg, n) || m.type != INDEX_MSG_FILE ||
			m.status != 1)) {
		close(fd);
		return -1;
	}
	return fd;
}

static int want_build_id(void *ctx, const uint8_t *id, size_t len)
{
	struct index_msg m = {.type = INDEX_MSG_WANT_BUILD_ID, .build_id_len = (uint32_t)len};

	(void)ctx;
	memcpy(m.build_id, id, len);
	return message_send(&m) ? -1 : answer_receive();
}

static int want_debuglink(void *ctx, const char *name, uint32_t n)
{
	struct index_msg m = {.type = INDEX_MSG_WANT_DEBUGLINK, .n = n};

	(void)ctx;
	snprintf(m.name, sizeof(m.name), "%s", name);
	return message_send(&m) ? -1 : answer_receive();
}

static int want_altlink(void *ctx, const char *name, const uint8_t *id, size_t len)
{
	struct index_msg m = {.type = INDEX_MSG_WANT_ALT, .build_id_len = (uint32_t)len};

	(void)ctx;
	memcpy(m.build_id, id, len);
	snprintf(m.name, sizeof(m.name), "%s", name);
	return message_send(&m) ? -1 : answer_receive();
}

static int write_all(const uint8_t *data, size_t len)
{
	for (size_t at = 0; at < len;) {
		ssize_t n = pwrite(INDEX_FD_OUT, data + at, len - at, (off_t)at);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -errno;
		at += (size_t)n;
	}
	return ftruncate(INDEX_FD_OUT, (off_t)len) ? -errno : 0;
}

/* Rows alone are written, and all else waits until the parent wants it. */
static int rows_made(void *ctx, const struct index_result *r, enum index_lines *lines)
{
	struct index_msg m = {.type = INDEX_MSG_ROWS}, reply = {0};
	ssize_t n;
	int rc = write_all(r->data, r->size);

	(void)ctx;
	snprintf(m.name, sizeof(m.name), "%s", r->key);
	if (!rc)
		rc = message_send(&m);
	if (rc)
		return rc;
	do {
		n = read(INDEX_FD_SOCKET, &reply, sizeof(reply)); /* recv is not allowed here */
	} while (n < 0 && errno == EINTR);
	if (n != sizeof(reply) || reply.type != INDEX_MSG_GO)
		return -EPIPE;
	if (!reply.status)
		*lines = INDEX_LINES_NONE;
	return 0;
}

static int work(enum index_lines lines, bool rows_first, struct index_result *r, struct err *e)
{
	const struct index_finder parent = {.by_build_id = want_build_id,
					    .by_debuglink = want_debuglink,
					    .by_altlink = want_altlink,
					    .rows_made = rows_first ? rows_made : NULL,
					    .lines = lines};
	int rc = sandbox_enter(lines == INDEX_LINES_ALL ? SANDBOX_LARGE : SANDBOX_SMALL, e);

	if (!rc)
		rc = indexer_run_fd(INDEX_FD_ELF, &parent, r, e);
	if (rc)
		return rc;
	rc = write_all(r->data, r->size);
	return rc ? err_set(e, rc, EXIT_RUNTIME, "cannot write the index: %s", strerror(-rc)) : 0;
}

int child_main(enum index_lines lines, bool rows_first)
{
	struct index_msg done = {.type = INDEX_MSG_DONE};
	struct index_result r = {0};
	struct err e = {0};
	const char *said;
	size_t len;
	int rc = work(lines, rows_first, &r, &e);

	done.status = rc;
	done.n = !rc && r.lines_later ? INDEX_DONE_LINES_LATER : 0;
	said = rc ? e.what : r.key;
	len = strlen(said);
	memcpy(done.name, said, len < sizeof(done.name) ? len : sizeof(done.name) - 1);
	free(r.data);
	return message_send(&done) || rc ? 1 : 0;
}
