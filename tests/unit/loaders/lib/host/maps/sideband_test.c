/* SPDX-License-Identifier: Apache-2.0 */
/* sideband: reads records as the kernel writes them and refuses cut or wrong ones; the oracle is
 * the running kernel. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <linux/perf_event.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "loaders/lib/host/maps/perfring.h"
#include "loaders/lib/host/maps/sideband.h"
#include "schema/base/clock.h"
#include "tests/unit/missing.h"
#include "tests/unit/test.h"

struct bytes {
	uint8_t b[512];
	size_t n;
};

static void put(struct bytes *o, const void *p, size_t n)
{
	memcpy(o->b + o->n, p, n);
	o->n += n;
}

static void put32(struct bytes *o, uint32_t v)
{
	put(o, &v, 4);
}

static void put64(struct bytes *o, uint64_t v)
{
	put(o, &v, 8);
}

static void begin(struct bytes *o, uint32_t type, uint16_t misc)
{
	struct perf_event_header h = {.type = type, .misc = misc};

	o->n = 0;
	put(o, &h, sizeof(h));
}

static void name8(struct bytes *o, const char *s)
{
	put(o, s, strlen(s));
	do
		put(o, "", 1);
	while (o->n % 8);
}

static void end(struct bytes *o)
{
	uint16_t size;

	put32(o, 1);
	put32(o, 1);
	put64(o, 123456789);
	put32(o, 3);
	put32(o, 0);
	size = (uint16_t)o->n;
	memcpy(o->b + offsetof(struct perf_event_header, size), &size, 2);
}

static void mmap2(struct bytes *o, uint16_t misc)
{
	begin(o, PERF_RECORD_MMAP2, misc);
	put32(o, 10);
	put32(o, 11);
	put64(o, 0x1000);
	put64(o, 0x2000);
	put64(o, 0x3000);
	put32(o, 8);
	put32(o, 1);
	put64(o, 12345);
	put64(o, 678);
	put32(o, 5);
	put32(o, 2);
	name8(o, "/lib/x.so");
	end(o);
}

static void assert_mapping(const struct sideband_rec *r)
{
	assert_int_equal(r->type, SIDEBAND_MMAP);
	assert_int_equal(r->pid, 10);
	assert_int_equal(r->addr, 0x1000);
	assert_int_equal(r->len, 0x2000);
	assert_int_equal(r->pgoff, 0x3000);
	assert_int_equal(r->major, 8);
	assert_int_equal(r->minor, 1);
	assert_int_equal(r->ino, 12345);
	assert_int_equal(r->ino_generation, 678);
	assert_int_equal(r->prot, 5);
	assert_string_equal(r->name, "/lib/x.so");
	assert_int_equal(r->time_ns, 123456789);
	assert_int_equal(r->cpu, 3);
}

TEST(a_mapping_is_read)
{
	struct sideband_rec r;
	struct bytes o;

	mmap2(&o, 0);
	assert_int_equal(sideband_parse(o.b, o.n, &r), 0);
	assert_mapping(&r);
}

/* Another program's event asked for build-ids. */
TEST(a_mark_that_it_has_a_build_id_is_not_believed)
{
	struct sideband_rec r;
	struct bytes o;

	mmap2(&o, PERF_RECORD_MISC_MMAP_BUILD_ID);
	assert_int_equal(sideband_parse(o.b, o.n, &r), 0);
	assert_mapping(&r);
}

TEST(a_record_cut_anywhere_is_refused_and_leaves_the_output_alone)
{
	struct sideband_rec r = {.pid = 77};
	struct bytes o;

	mmap2(&o, 0);
	for (size_t n = 0; n < o.n; n++) {
		uint8_t cut[512];
		uint16_t size = (uint16_t)n;

		memcpy(cut, o.b, o.n);
		memcpy(cut + offsetof(struct perf_event_header, size), &size, 2);
		if (n < o.n - 8) /* the padding of the name may go unnoticed */
			assert_int_equal(sideband_parse(cut, n, &r), -EBADMSG);
	}
	assert_int_equal(r.pid, 77);
}

TEST(a_name_without_its_end_is_refused)
{
	struct sideband_rec r;
	struct bytes o;

	begin(&o, PERF_RECORD_COMM, PERF_RECORD_MISC_COMM_EXEC);
	put32(&o, 1);
	put32(&o, 1);
	put(&o, "abcdefgh", 8);
	end(&o);
	assert_int_equal(sideband_parse(o.b, o.n, &r), -EBADMSG);
	begin(&o, PERF_RECORD_COMM, PERF_RECORD_MISC_COMM_EXEC);
	put32(&o, 1);
	put32(&o, 2);
	name8(&o, "comm");
	end(&o);
	assert_int_equal(sideband_parse(o.b, o.n, &r), 0);
	assert_true(r.exec);
	assert_string_equal(r.name, "comm");
}

TEST(a_mapping_that_wraps_the_address_space_is_refused)
{
	struct sideband_rec r;
	struct bytes o;
	uint64_t len = UINT64_MAX;

	mmap2(&o, 0);
	memcpy(o.b + 8 + 16, &len, 8);
	assert_int_equal(sideband_parse(o.b, o.n, &r), -EBADMSG);
}

TEST(records_of_other_types_are_passed_over)
{
	struct sideband_rec r;
	struct bytes o;

	begin(&o, PERF_RECORD_THROTTLE, 0);
	put64(&o, 1);
	end(&o);
	assert_int_equal(sideband_parse(o.b, o.n, &r), -ENOENT);
}

/* ---- the kernel ---- */

struct seen {
	uint32_t child;
	int execs, maps, bad;
	uint64_t last;
	bool true_mapped;
};

static void look(void *ctx, const void *rec, size_t len)
{
	struct seen *s = ctx;
	struct sideband_rec r;
	int rc = sideband_parse(rec, len, &r);

	if (rc == -EBADMSG)
		s->bad++;
	if (rc || r.pid != s->child)
		return;
	s->execs += r.type == SIDEBAND_COMM && r.exec;
	if (r.type == SIDEBAND_MMAP && s->execs) {
		s->maps++;
		s->true_mapped |= strstr(r.name, "true") && r.prot & PROT_EXEC;
		assert_true(r.time_ns >= s->last && r.time_ns <= (uint64_t)clock_boot_ns());
		s->last = r.time_ns;
	}
}

TEST(the_kernels_own_records_of_an_exec_are_all_understood)
{
	struct perfring_opts o = {.bytes = 128 << 10, .task = true};
	struct perfring *ring;
	struct seen s = {0};
	pid_t pid;

	if (perfring_open(&o, &ring, NULL)) {
		skip_missing("the right to watch all processes");
	}
	pid = fork();
	if (!pid) {
		execl("/bin/true", "true", (char *)NULL);
		_exit(1);
	}
	waitpid(pid, NULL, 0);
	s.child = (uint32_t)pid;
	perfring_read(ring, look, &s);
	assert_int_equal(s.bad, 0);
	assert_int_equal(s.execs, 1);
	assert_true(s.maps >= 2);
	assert_true(s.true_mapped);
	perfring_close(ring);
}
