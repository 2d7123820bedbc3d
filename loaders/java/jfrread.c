/* SPDX-License-Identifier: Apache-2.0 */
#include "loaders/java/jfrread.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "loaders/lib/sandbox/sandbox.h"
#include "schema/base/clock.h"
#include "schema/base/mem.h"

#define JOB_NS (30 * NSEC_PER_SEC)
#define TRIES  4

/* A job: these words, and the file. */
struct job_message {
	uint64_t since;
	int64_t after_chunk_ns;
	uint64_t live;
};
/* ---- the child: reads ---- */

/* All of it, with a header that was the same before and after, so that places in it are of these
 * bytes. */
static int file_read(int fd, bool live, void **out, size_t *len)
{
	unsigned char before[JFRPICK_HEADER];

	for (int i = 0; i < TRIES; i++) {
		const off_t end = lseek(fd, 0, SEEK_END); /* the sandbox has no fstat of glibc's */
		char *bytes;
		size_t size;

		if (end < (off_t)JFRPICK_HEADER)
			return -EAGAIN;
		size = end > (off_t)JFRREAD_FILE_MAX ? JFRREAD_FILE_MAX : (size_t)end;
		if (subreader_get(fd, before, sizeof(before), 0) != sizeof(before) ||
		    (live && !jfrpick_header(before, NULL)))
			continue;
		bytes = mem_alloc(size);
		*len = subreader_get(fd, bytes, size, 0);
		*out = bytes;
		if (*len >= JFRPICK_HEADER && (!live || !memcmp(bytes, before, sizeof(before))) &&
		    subreader_get(fd, before, sizeof(before), 0) == sizeof(before) &&
		    (!live || !memcmp(bytes, before, sizeof(before))))
			return 0;
		free(bytes);
	}
	return -EAGAIN;
}

static int work(const void *job, size_t job_size, const struct subreader_files *f)
{
	const struct job_message *j = job;
	void *file = NULL, *block = NULL;
	size_t len = 0, size = 0;
	int32_t status;

	if (job_size != sizeof(*j) || f->n != 1 || sandbox_enter(SANDBOX_SMALL, NULL))
		return 1;
	const struct jfrpick_opts o = {
		.live = j->live, .since = j->since, .after_chunk_ns = j->after_chunk_ns};
	status = file_read(f->files[0], o.live, &file, &len);
	if (!status)
		status = jfrpick(file, len, &o, &block, &size);
	if (!status) {
		((struct jfrblock_head *)block)->cpu_ns = (uint64_t)clock_cpu_ns();
		status = subreader_put(f->out, block, size);
	}
	return write(f->said, &status, sizeof(status)) == sizeof(status) ? 0 : 1;
}

/* ---- the loader's side ---- */

int jfrread_open(struct subreader *r)
{
	return subreader_open(r, "sonde-jfr", work);
}

int jfrread_ask(const struct subreader *r, int file, const struct jfrpick_opts *o,
		struct subreader_job *job)
{
	const struct job_message j = {
		.since = o->since, .after_chunk_ns = o->after_chunk_ns, .live = o->live};

	return subreader_ask(r, &j, sizeof(j), &file, 1, JOB_NS, job);
}

int jfrread_take(struct subreader_job *job, int wait_ms, void **bytes, struct jfrblock *out)
{
	int32_t status = 0;
	size_t len;
	int rc = subreader_take(job, wait_ms, &status, sizeof(status));

	if (rc == -EINPROGRESS)
		return rc;
	if (!rc)
		rc = status > 0 ? -EBADMSG : status;
	if (!rc)
		rc = subreader_result(job, JFRBLOCK_BYTES_MAX, bytes, &len);
	if (!rc && jfrblock_open(*bytes, len, out)) {
		free(*bytes);
		*bytes = NULL;
		rc = -EBADMSG;
	}
	subreader_drop(job);
	return rc;
}
