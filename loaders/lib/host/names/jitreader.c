/* SPDX-License-Identifier: Apache-2.0 */
#include "loaders/lib/host/names/jitreader.h"

#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#include "loaders/lib/host/names/jitdump.h"
#include "loaders/lib/host/names/perfmap.h"
#include "loaders/lib/sandbox/sandbox.h"
#include "loaders/lib/sandbox/subreader.h"
#include "schema/base/cleanup.h"
#include "schema/base/clock.h"
#include "schema/base/mem.h"

#define JOB_NS (10 * NSEC_PER_SEC)

struct jitreader {
	struct subreader process;
	unsigned int running; /* jobs */
};

/* A job: these words, and the files, dump first. */
struct job_message {
	uint32_t nspid;
	int32_t why;
	uint32_t has_dump, has_map;
	uint64_t dump_size, map_size;
};
/* ---- the child: reads ---- */

static int dump_parse(const struct jitnames_files *f, struct perfmap **out)
{
	cleanup_free char *buf = NULL;
	size_t len = 0;
	int rc = jitdump_slim(f->dump, f->stamp.dump.size, &buf, &len);

	return rc ? rc : jitdump_parse(buf, len, f->nspid, out);
}

int jitreader_parse(const struct jitnames_files *f, struct perfmap **out,
		    struct jitnames_told *told)
{
	int rc = f->dump < 0 ? -ENOENT : dump_parse(f, out), other;

	told->dump = !rc;
	if (rc) {
		other = f->map < 0 ? f->why : perfmap_stream(f->map, f->stamp.map.size, out);
		told->cut = !other && f->stamp.map.size > PERFMAP_FILE_MAX;
		rc = other == -ENOENT ? rc : other;
	}
	told->names = rc ? 0 : perfmap_count(*out);
	return told->status = rc;
}

static int write_out(int fd, const struct perfmap *m)
{
	const size_t len = perfmap_packed_size(m);
	char *bytes = mem_alloc(len);

	perfmap_pack(m, bytes);
	return subreader_put(fd, bytes, len);
}

static int work(const void *job, size_t size, const struct subreader_files *files)
{
	const struct job_message *j = job;
	struct jitnames_told told = {0};
	struct perfmap *m = NULL;

	if (size != sizeof(*j) || files->n != j->has_dump + j->has_map ||
	    sandbox_enter(SANDBOX_NAMES, NULL))
		return 1;
	const struct jitnames_files f = {
		.dump = j->has_dump ? files->files[0] : -1,
		.map = j->has_map ? files->files[j->has_dump] : -1,
		.why = j->why,
		.nspid = j->nspid,
		.stamp = {.dump.size = j->dump_size, .map.size = j->map_size},
	};
	if (!jitreader_parse(&f, &m, &told))
		told.status = write_out(files->out, m);
	told.cpu_ns = (uint64_t)clock_cpu_ns();
	return write(files->said, &told, sizeof(told)) == sizeof(told) ? 0 : 1;
}

/* ---- the loader's side ---- */

struct jitreader *jitreader_open(void)
{
	struct jitreader *r = mem_alloc(sizeof(*r));

	*r = (struct jitreader){0};
	if (!subreader_open(&r->process, "sonde-names", work))
		return r;
	free(r);
	return NULL;
}

void jitreader_close(struct jitreader *r)
{
	if (!r)
		return;
	subreader_close(&r->process);
	free(r);
}

int jitreader_ask(struct jitreader *r, const struct jitnames_files *f, struct jitjob *job)
{
	const struct job_message j = {.nspid = f->nspid,
				      .why = f->why,
				      .has_dump = f->dump >= 0,
				      .has_map = f->map >= 0,
				      .dump_size = f->stamp.dump.size,
				      .map_size = f->stamp.map.size};
	int files[2], rc;
	size_t n = 0;

	if (!r)
		return -ENOSYS;
	if (r->running >= JITREADER_JOBS_MAX)
		return -EBUSY;
	if (f->dump >= 0)
		files[n++] = f->dump;
	if (f->map >= 0)
		files[n++] = f->map;
	rc = subreader_ask(&r->process, &j, sizeof(j), files, n, JOB_NS, &job->read);
	if (rc)
		return rc;
	r->running++;
	job->of = r;
	return 0;
}

void jitjob_drop(struct jitjob *job)
{
	if (job->read.said < 0)
		return;
	subreader_drop(&job->read);
	job->of->running--;
	*job = JITJOB_NONE;
}

static int map_take(const struct jitjob *job, struct perfmap **out)
{
	void *block;
	size_t len;
	int rc = subreader_result(&job->read, 2 * PERFMAP_BYTES, &block, &len);

	if (rc)
		return -ECHILD;
	rc = perfmap_unpack(block, len, out);
	if (rc)
		free(block);
	return rc ? -ECHILD : 0;
}

int jitjob_take(struct jitjob *job, int wait_ms, struct perfmap **out, struct jitnames_told *told)
{
	int rc;

	*told = (struct jitnames_told){0};
	rc = subreader_take(&job->read, wait_ms, told, sizeof(*told));
	if (rc == -EINPROGRESS)
		return told->status = rc;
	if (!rc)
		rc = told->status > 0 ? -ECHILD : told->status;
	if (!rc)
		rc = map_take(job, out);
	if (!rc)
		told->names = perfmap_count(*out);
	jitjob_drop(job);
	return told->status = rc;
}
