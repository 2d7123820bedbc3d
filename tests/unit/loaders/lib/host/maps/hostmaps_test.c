/* SPDX-License-Identifier: Apache-2.0 */
/* hostmaps: a sample is named by the mapping that was valid at its time, or not at all. The tests
 * feed packets; no sonde-maps runs. */
#include <errno.h>
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "loaders/lib/host/proc/container.h"
#include "loaders/lib/host/maps/hostmaps.h"
#include "loaders/lib/host/maps/hostmaps_packet.h"
#include "loaders/lib/host/maps/private.h"
#include "loaders/lib/host/maps/mapspack.h"
#include "probes/lib/stack.h"
#include "schema/base/clock.h"
#include "schema/base/strbuf.h"
#include "tests/unit/test.h"

static struct hostmaps *hm;
static const int no_fds[MP_FDS_MAX] = {-1, -1, -1, -1, -1, -1, -1};
static uint64_t t0; /* times are of now, so that nothing is forgotten */

static int set_up(void **state)
{
	struct mp_hello hello = {.version = MP_VERSION};
	struct strbuf b = STRBUF_INIT;

	(void)state;
	hm = hostmaps_new();
	t0 = (uint64_t)clock_boot_ns();
	mapspack_add(&b, MP_HELLO, &hello, NULL);
	mapspack_add(&b, MP_WATERMARK, &(struct mp_watermark){.time_ns = t0 + 1000}, NULL);
	assert_int_equal(hostmaps_packet(hm, b.buf, b.len, no_fds), 0);
	strbuf_release(&b);
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	hostmaps_close(hm);
	return 0;
}

static void tell(uint32_t type, const void *m, const char *const *str)
{
	struct strbuf b = STRBUF_INIT;

	mapspack_add(&b, type, m, str);
	assert_int_equal(hostmaps_packet(hm, b.buf, b.len, no_fds), 0);
	strbuf_release(&b);
}

static void process(uint32_t exec_id, uint64_t time, const char *comm)
{
	struct mp_process m = {.tgid = 5, .start_ns = 50, .exec_id = exec_id, .time_ns = t0 + time};
	const char *str[] = {comm, "/exe", "args", "/"};

	tell(MP_PROCESS, &m, str);
}

static void image(uint32_t id, const char *path)
{
	struct mp_image m = {.id = id};
	const char *str[] = {path};

	tell(MP_IMAGE, &m, str);
}

static void map(uint32_t exec_id, uint64_t start, uint64_t end, uint32_t img, uint64_t time)
{
	struct mp_map m = {.tgid = 5,
			   .start_ns = 50,
			   .exec_id = exec_id,
			   .start = start,
			   .end = end,
			   .image = img,
			   .time_ns = t0 + time,
			   .offset = 0x100};

	tell(MP_MAP, &m, NULL);
}

static void seeded(void)
{
	struct mp_head m = {0};

	tell(MP_SEEDED, &m, NULL);
}

/* "" nothing known, "anon", or the image's path */
static const char *at(uint32_t exec_id, uint64_t addr, uint64_t time)
{
	struct hostmaps_process *p = hostmaps_process(hm, 5, 50, exec_id);
	struct hostmaps_frame f;

	assert_non_null(p);
	hostmaps_frame(hm, p, addr, t0 + time, &f);
	return !f.mapped ? "" : f.image ? f.image->path : "anon";
}

TEST_WITH(a_frame_is_named_by_the_mapping_that_held_at_its_time, set_up, tear_down)
{
	process(1, 0, "a");
	image(1, "/red");
	image(2, "/blue");
	map(1, 0x1000, 0x2000, 1, 10);
	map(1, 0x1000, 0x1800, 2, 20);
	map(1, 0x9000, 0xa000, 0, 20);
	assert_string_equal(at(1, 0x1100, 15), "/red");
	assert_string_equal(at(1, 0x1100, 25), "/blue");
	assert_string_equal(at(1, 0x1900, 25), "/red");
	assert_string_equal(at(1, 0x1100, 5), "");
	assert_string_equal(at(1, 0x9000, 25), "anon");
	assert_string_equal(at(1, 0x3000, 25), "");
	assert_int_equal(hostmaps_pending(hm), 2);
}

TEST_WITH(the_way_into_exec_is_named_by_the_old_program, set_up, tear_down)
{
	process(1, 0, "old");
	image(1, "/red");
	image(2, "/blue");
	map(1, 0x1000, 0x2000, 1, 1);
	process(2, 100, "new");
	map(2, 0x1000, 0x2000, 2, 100);
	assert_string_equal(at(2, 0x1100, 99),
			    "/red"); /* exec id raised, first instruction not yet run */
	assert_string_equal(at(2, 0x1100, 100), "/blue");
	assert_string_equal(at(1, 0x1100, 50), "/red");
	assert_int_equal(hostmaps_process(hm, 5, 50, 1)->to_ns, t0 + 100);
	assert_null(hostmaps_process(hm, 5, 50, 3));
	assert_null(hostmaps_process(hm, 5, 51, 1));
}

TEST_WITH(after_a_loss_only_what_is_told_again_is_claimed, set_up, tear_down)
{
	struct mp_lost lost = {.time_ns = t0 + 50, .records = 3};

	process(1, 0, "a");
	image(1, "/kept");
	image(2, "/replaced");
	image(3, "/new");
	map(1, 0x1000, 0x2000, 1, 10);
	map(1, 0x5000, 0x6000, 2, 10);
	seeded();
	tell(MP_LOST, &lost, NULL);
	process(1, 0, "a");
	map(1, 0x1000, 0x2000, 1, 80);
	map(1, 0x5000, 0x6000, 3, 80);
	seeded();
	assert_int_equal(hostmaps_lost(hm), 3);
	assert_string_equal(at(1, 0x1100, 20), "/kept");
	assert_string_equal(at(1, 0x1100, 60), "/kept"); /* as before and after: it was there */
	assert_string_equal(at(1, 0x5100, 20), "/replaced");
	assert_string_equal(at(1, 0x5100, 60), ""); /* one or the other */
	assert_string_equal(at(1, 0x5100, 80), "/new");
}

TEST_WITH(after_a_loss_nothing_is_claimed_of_what_changes_hands, set_up, tear_down)
{
	struct mp_lost lost = {.time_ns = t0 + 50, .records = 3};

	process(1, 0, "a");
	image(1, "/red");
	image(2, "/blue");
	map(1, 0x1000, 0x2000, 1, 10);
	map(1, 0x1000, 0x2000, 2, 20);
	map(1, 0x1000, 0x2000, 1, 30);
	seeded();
	tell(MP_LOST, &lost, NULL);
	process(1, 0, "a");
	map(1, 0x1000, 0x2000, 1, 80);
	seeded();
	assert_string_equal(at(1, 0x1100, 25), "/blue");
	assert_string_equal(at(1, 0x1100, 40), "/red");
	assert_string_equal(at(1, 0x1100, 60), ""); /* it may have been blue's turn, unheard */
	assert_string_equal(at(1, 0x1100, 80), "/red");
}

TEST_WITH(a_process_that_is_not_told_again_has_ended, set_up, tear_down)
{
	struct mp_lost lost = {.time_ns = t0 + 50};

	process(1, 0, "a");
	seeded();
	tell(MP_LOST, &lost, NULL);
	seeded();
	assert_int_equal(hostmaps_process(hm, 5, 50, 1)->to_ns, t0 + 50);
}

TEST_WITH(more_that_is_known_raises_the_serial, set_up, tear_down)
{
	uint32_t first;

	process(1, 0, "a");
	first = hostmaps_process(hm, 5, 50, 1)->serial;
	process(1, 0, "a");
	assert_int_equal(hostmaps_process(hm, 5, 50, 1)->serial, first);
	process(1, 0, "renamed");
	assert_int_equal(hostmaps_process(hm, 5, 50, 1)->serial, first + 1);
	assert_string_equal(hostmaps_process(hm, 5, 50, 1)->comm, "renamed");
}

TEST_WITH(a_refused_image_is_told_once, set_up, tear_down)
{
	struct mp_index m = {.id = 1, .state = MP_INDEX_REFUSED};
	const char *str[] = {"", "no ELF"};
	struct hostmaps_image *img;

	process(1, 0, "a");
	image(1, "/x");
	map(1, 0x1000, 0x2000, 1, 10);
	at(1, 0x1100, 20);
	assert_int_equal(hostmaps_pending(hm), 1);
	tell(MP_INDEX, &m, str);
	assert_int_equal(hostmaps_pending(hm), 0);
	img = hostmaps_next_ready(hm);
	assert_non_null(img);
	assert_int_equal(img->state, MP_INDEX_REFUSED);
	assert_string_equal(img->reason, "no ELF");
	assert_null(hostmaps_next_ready(hm));
}

TEST_WITH(a_process_known_by_proc_alone_is_found_by_its_tick, set_up, tear_down)
{
	struct mp_process m = {.tgid = 1, .start_ns = 30000000};
	const char *str[] = {"init", "", "", "/"};

	tell(MP_PROCESS, &m, str);
	assert_non_null(hostmaps_process(hm, 1, 34567890, 12));
	assert_null(hostmaps_process(hm, 1, 44567890, 12));
}

/* ---- frames of tables ---- */

/* Where the frame (image, offset), unwound as of `tables`, was at `time`: "path", "path!" if it is
 * stale. A return address unless EXACT is in it. */
static const char *placed(uint32_t tgid, uint32_t exec_id, uint64_t frame, uint64_t tables,
			  uint64_t time)
{
	static char text[64];
	struct hostmaps_process *p = hostmaps_process(hm, tgid, tgid == 5 ? 50 : 60, exec_id);
	struct hostmaps_frame f;

	assert_non_null(p);
	hostmaps_frame_owner(hm, p, frame, t0 + tables, t0 + time, &f);
	snprintf(text, sizeof(text), "%s%s",
		 !f.mapped ? "" :
		 f.image   ? f.image->path :
			     "anon",
		 f.stale ? "!" : "");
	if (f.image && frame & FRAME_IMAGE && !f.stale)
		assert_int_equal(f.offset, frame & FRAME_OFFSET_MASK);
	return text;
}

#define IN(image, offset) (FRAME_IMAGE | (uint64_t)(image) << FRAME_OFFSET_BITS | (offset))

TEST_WITH(a_frame_of_tables_stands_where_nothing_changed, set_up, tear_down)
{
	process(1, 0, "a");
	image(1, "/red");
	map(1, 0x1000, 0x2000, 1, 10);
	assert_string_equal(placed(5, 1, IN(1, 0x180) | FRAME_EXACT, 10, 30), "/red");
	assert_string_equal(placed(5, 1, IN(1, 0x180), 3, 30),
			    "/red"); /* first reported at 10: it was valid before */
	assert_string_equal(placed(5, 1, IN(1, 0x1100), 10, 30), "/red"); /* behind its last byte */
	assert_string_equal(placed(5, 1, IN(9, 0x180), 10, 30), "!");     /* never heard of */
	assert_int_equal(hostmaps_pending(hm), 1);
}

TEST_WITH(a_frame_is_stale_where_another_file_has_come_in_between, set_up, tear_down)
{
	process(1, 0, "a");
	image(1, "/red");
	image(2, "/blue");
	map(1, 0x1000, 0x2000, 1, 10);
	map(1, 0x8000, 0x9000, 2, 10);
	map(1, 0x1000, 0x1800, 2, 20);
	assert_string_equal(placed(5, 1, IN(1, 0x180), 15, 19), "/red");
	assert_string_equal(placed(5, 1, IN(1, 0x180), 15, 20), "/blue!");
	assert_string_equal(placed(5, 1, IN(1, 0x180), 15, 40), "/blue!");
	assert_string_equal(placed(5, 1, IN(1, 0x1000), 15, 40), "/red"); /* 0x1f00: not replaced */
	assert_string_equal(placed(5, 1, IN(2, 0x180), 15, 40), "/blue"); /* 0x8080 */
	/* the first byte of what was replaced, and the call before it, of what was not */
	assert_string_equal(placed(5, 1, IN(1, 0x900), 15, 40), "/blue!");
	assert_string_equal(placed(5, 1, IN(1, 0x900) | FRAME_EXACT, 15, 40), "/red");
	/* the tables knew of the change */
	assert_string_equal(placed(5, 1, IN(2, 0x180), 20, 40), "/blue");
}

TEST_WITH(a_file_that_was_there_twice_and_is_no_more_in_one_place_is_not_guessed, set_up, tear_down)
{
	process(1, 0, "a");
	image(1, "/red");
	image(2, "/blue");
	map(1, 0x1000, 0x2000, 1, 10);
	map(1, 0x5000, 0x6000, 1, 10);
	map(1, 0x7000, 0x8000, 2, 20);
	assert_string_equal(placed(5, 1, IN(1, 0x180), 15, 40), "/red");
	map(1, 0x5000, 0x6000, 2, 30);
	assert_string_equal(placed(5, 1, IN(1, 0x180), 15, 40), "!");
}

TEST_WITH(a_raw_address_of_tables_is_stale_where_it_was_something_else, set_up, tear_down)
{
	process(1, 0, "a");
	image(1, "/red");
	map(1, 0x1000, 0x2000, 0, 10);
	assert_string_equal(placed(5, 1, 0x1100, 15, 18), "anon");
	map(1, 0x1000, 0x2000, 1, 20);
	assert_string_equal(placed(5, 1, 0x1100 | FRAME_EXACT, 15, 30), "/red!");
	assert_string_equal(placed(5, 1, 0x1100, 15, 19), "anon");
	assert_string_equal(placed(5, 1, 0x1100, 20, 30), "/red");
	assert_string_equal(placed(5, 1, 0xffffffffff600000, 20, 30),
			    ""); /* its high bits are no frame's */
}

TEST_WITH(a_forked_child_begins_with_its_parents_tables, set_up, tear_down)
{
	struct mp_process child = {
		.tgid = 6, .start_ns = 60, .exec_id = 1, .ppid = 5, .time_ns = t0 + 100};
	struct mp_map m = {.tgid = 6,
			   .start_ns = 60,
			   .exec_id = 1,
			   .start = 0x1000,
			   .end = 0x2000,
			   .image = 2,
			   .time_ns = t0 + 100,
			   .offset = 0x100};
	const char *str[] = {"child", "/exe", "args", "/"};

	process(1, 0, "a");
	image(1, "/red");
	image(2, "/blue");
	image(3, "/both");
	map(1, 0x1000, 0x2000, 1, 10);
	map(1, 0x8000, 0x9000, 3, 10);
	map(1, 0x1000, 0x2000, 2, 90);
	tell(MP_PROCESS, &child, str);
	tell(MP_MAP, &m, NULL);
	m.start = 0x8000;
	m.end = 0x9000;
	m.image = 3;
	tell(MP_MAP, &m, NULL);
	assert_string_equal(placed(6, 1, IN(1, 0x180), 50, 110),
			    "/blue!"); /* its parent's change had not been published */
	assert_string_equal(placed(6, 1, IN(3, 0x180), 50, 110), "/both");
	assert_string_equal(placed(6, 1, IN(2, 0x180), 95, 110), "/blue");
	assert_string_equal(placed(6, 1, IN(2, 0x180), 105, 110), "/blue");
}

TEST_WITH(a_fork_has_the_mappings_that_its_parent_had_at_that_time, set_up, tear_down)
{
	struct mp_process child = {.tgid = 6,
				   .start_ns = 60,
				   .exec_id = 1,
				   .ppid = 5,
				   .time_ns = t0 + 100,
				   .from_tgid = 5,
				   .from_start_ns = 50,
				   .from_exec_id = 1};
	const char *str[] = {"child", "/exe", "args", "/"};

	process(1, 0, "a");
	image(1, "/red");
	image(2, "/blue");
	map(1, 0x1000, 0x2000, 1, 10);
	tell(MP_PROCESS, &child, str);
	map(1, 0x1000, 0x2000, 2, 120);
	assert_string_equal(placed(6, 1, IN(1, 0x180), 105, 130), "/red");
	assert_string_equal(placed(6, 1, 0x1100 | FRAME_EXACT, 105, 130), "/red");
	assert_string_equal(placed(5, 1, 0x1100 | FRAME_EXACT, 125, 130), "/blue");
	child.tgid = 7;
	child.from_tgid = 99; /* not known here: it has none, until they are sent */
	tell(MP_PROCESS, &child, str);
	assert_string_equal(placed(7, 1, 0x1100, 105, 130), "");
}

static const char *learnt_args;

static void learnt(void *ctx, struct hostmaps_process *p)
{
	(void)ctx;
	learnt_args = p->args;
}

TEST_WITH(arguments_that_were_asked_for_are_told_also_after_the_end, set_up, tear_down)
{
	struct mp_process m = {.tgid = 5,
			       .start_ns = 50,
			       .exec_id = 1,
			       .time_ns = t0,
			       .flags = MP_PROCESS_ARGS_LATER};
	struct mp_args args = {.tgid = 5, .start_ns = 50, .exec_id = 1};
	struct mp_exit end = {.tgid = 5, .start_ns = 50, .time_ns = t0 + 10};
	struct hostmaps_process *p;
	uint32_t serial;

	learnt_args = NULL;
	hostmaps_on_args(hm, learnt, NULL);
	tell(MP_PROCESS, &m, (const char *[]){"cc", "/bin/cc", "", "/"});
	p = hostmaps_process(hm, 5, 50, 1);
	assert_true(p->args_later);
	assert_string_equal(p->args, "");
	tell(MP_EXIT, &end, NULL);
	serial = p->serial;
	tell(MP_ARGS, &args, (const char *[]){"cc -c x.c"});
	assert_string_equal(p->args, "cc -c x.c");
	assert_string_equal(learnt_args, "cc -c x.c");
	assert_true(p->serial != serial);
	assert_int_equal(p->to_ns, t0 + 10);
	assert_false(p->args_later);
	/* sent again, of another cgroup, by who has not masked them yet */
	tell(MP_PROCESS, &m, (const char *[]){"cc", "/bin/cc", "", "/x"});
	assert_string_equal(p->args, "cc -c x.c");
	assert_false(p->args_later);
}

TEST_WITH(after_a_loss_a_frame_stands_if_its_mapping_was_told_again, set_up, tear_down)
{
	struct mp_lost lost = {.time_ns = t0 + 50, .records = 1};

	process(1, 0, "a");
	image(1, "/kept");
	image(2, "/replaced");
	image(3, "/new");
	map(1, 0x1000, 0x2000, 1, 10);
	map(1, 0x5000, 0x6000, 2, 10);
	seeded();
	tell(MP_LOST, &lost, NULL);
	assert_string_equal(placed(5, 1, IN(1, 0x180), 20, 40), "/kept");
	assert_string_equal(placed(5, 1, IN(1, 0x180), 20, 60), "!"); /* not known yet */
	process(1, 0, "a");
	map(1, 0x1000, 0x2000, 1, 80);
	map(1, 0x5000, 0x6000, 3, 80);
	seeded();
	assert_string_equal(placed(5, 1, IN(1, 0x180), 20, 60), "/kept");
	assert_string_equal(placed(5, 1, IN(1, 0x180), 20, 90), "/kept");
	assert_string_equal(placed(5, 1, IN(2, 0x180), 20, 40), "/replaced");
	assert_string_equal(placed(5, 1, IN(2, 0x180), 20, 60), "!");
	assert_string_equal(placed(5, 1, IN(2, 0x180), 20, 90), "/new!");
}

TEST_WITH(an_image_id_means_what_it_meant_when_the_tables_were_made, set_up, tear_down)
{
	struct mp_map m = {.tgid = 5,
			   .start_ns = 50,
			   .exec_id = 1,
			   .start = 0x1000,
			   .end = 0x2000,
			   .image = 1,
			   .time_ns = t0 + 120,
			   .offset = 0x100};

	process(1, 0, "a");
	image(1, "/red");
	image(2, "/kept");
	map(1, 0x1000, 0x2000, 1, 10);
	map(1, 0x5000, 0x6000, 2, 10);
	hm->generation++; /* another sonde-maps, that counts from 1 again */
	hm->generation_ns[hm->generation % GENERATIONS] = t0 + 100;
	hostmaps_unsure(hm, t0 + 100);
	process(1, 0, "a");
	image(1, "/blue");
	image(7, "/kept");
	tell(MP_MAP, &m, NULL);
	m.start = 0x5000;
	m.end = 0x6000;
	m.image = 7;
	tell(MP_MAP, &m, NULL);
	seeded();
	assert_string_equal(placed(5, 1, IN(1, 0x180), 50, 60), "/red");
	assert_string_equal(placed(5, 1, IN(1, 0x180), 50, 150), "/blue!");
	assert_string_equal(placed(5, 1, IN(1, 0x180), 120, 150), "/blue");
	assert_string_equal(placed(5, 1, IN(2, 0x180), 50, 150),
			    "/kept"); /* the same file under its new id */
	assert_string_equal(placed(5, 1, IN(7, 0x180), 99, 150),
			    "/kept"); /* its end was noticed late */
}

TEST_WITH(what_is_not_told_yet_is_claimed_only_of_a_process_at_rest, set_up, tear_down)
{
	process(1, 0, "a");
	image(1, "/red");
	map(1, 0x1000, 0x2000, 1, 10);
	assert_string_equal(placed(5, 1, IN(1, 0x180), 10, 1000), "/red");
	assert_string_equal(placed(5, 1, IN(1, 0x180), 10, 1001), "!");
	assert_string_equal(placed(5, 1, 0x1080, 10, 1001), "!");
	tell(MP_WATERMARK, &(struct mp_watermark){.time_ns = t0 + 5 * NSEC_PER_SEC + 11}, NULL);
	assert_string_equal(placed(5, 1, IN(1, 0x180), 10, 6 * NSEC_PER_SEC), "/red");
}

TEST_WITH(another_protocol_version_is_refused, set_up, tear_down)
{
	struct mp_hello hello = {.version = MP_VERSION + 1};
	struct strbuf b = STRBUF_INIT;

	mapspack_add(&b, MP_HELLO, &hello, NULL);
	assert_int_equal(hostmaps_packet(hm, b.buf, b.len, no_fds), -EPROTO);
	strbuf_release(&b);
}

static bool same_open_file(int a, int b)
{
	struct stat x, y;

	return !fstat(a, &x) && !fstat(b, &y) && x.st_dev == y.st_dev && x.st_ino == y.st_ino;
}

TEST_WITH(the_tables_are_there_whole_or_not_at_all, set_up, tear_down)
{
	struct mp_hello hello = {.version = MP_VERSION, .flags = MP_HELLO_TABLES};
	struct mp_tables m = {.generation = 1};
	int sent[MP_FDS_MAX], got[MP_TABLES_N];
	struct strbuf b = STRBUF_INIT;

	assert_true(hostmaps_greeted(hm)); /* the first hello promised none */
	hostmaps_tables(hm, got);
	for (int i = 0; i < MP_TABLES_N; i++)
		assert_int_equal(got[i], -1);
	tell(MP_HELLO, &hello, NULL);
	assert_false(hostmaps_greeted(hm));
	for (int i = 0; i < MP_FDS_MAX; i++)
		sent[i] = memfd_create("table", MFD_CLOEXEC);
	mapspack_add(&b, MP_TABLES, &m, NULL);
	assert_int_equal(hostmaps_packet(hm, b.buf, b.len,
					 (int[]){sent[0], sent[1], sent[2], sent[3], sent[4],
						 sent[5], sent[6], -1}),
			 -EPROTO);
	assert_false(hostmaps_greeted(hm));
	for (int turn = 0; turn < 2; turn++) { /* told again after a restart */
		assert_int_equal(hostmaps_packet(hm, b.buf, b.len, sent), 0);
		hostmaps_tables(hm, got);
		for (int i = 0; i < MP_TABLES_N; i++)
			assert_true(got[i] != sent[i] && same_open_file(got[i], sent[i]));
	}
	assert_true(hostmaps_greeted(hm));
	for (int i = 0; i < MP_FDS_MAX; i++)
		close(sent[i]);
	strbuf_release(&b);
}

static struct {
	uint32_t n, tgid;
	enum hostmaps_end end;
	int status;
} ended;

static void on_ended(void *ctx, struct hostmaps_process *p)
{
	(void)ctx;
	ended.n++;
	ended.tgid = p->tgid;
	ended.end = p->end;
	ended.status = p->status;
}

static void begin_process(uint32_t tgid, uint64_t start_ns, uint32_t exec_id)
{
	struct mp_process m = {
		.time_ns = start_ns, .start_ns = start_ns, .tgid = tgid, .exec_id = exec_id};

	tell(MP_PROCESS, &m, (const char *[]){"x", "/bin/x", "x", "/"});
}

TEST_WITH(each_end_of_a_process_is_told_once_and_how, set_up, tear_down)
{
	struct mp_exit m = {.time_ns = 9000, .start_ns = 1000, .tgid = 70, .exit_code = 3 << 8};

	hostmaps_on_end(hm, on_ended, NULL);
	ended.n = 0;
	begin_process(70, 1000, 1);
	begin_process(70, 1000, 2); /* exec */
	assert_int_equal(ended.n, 1);
	assert_int_equal(ended.end, HOSTMAPS_EXECED);
	tell(MP_EXIT, &m, NULL);
	tell(MP_EXIT, &m, NULL);
	assert_int_equal(ended.n, 2);
	assert_int_equal(ended.end, HOSTMAPS_ENDED);
	assert_int_equal(ended.status, 3 << 8);
	begin_process(71, 2000, 1);
	m = (struct mp_exit){.time_ns = 9500,
			     .start_ns = 2000,
			     .tgid = 71,
			     .exit_code = 9,
			     .flags = MP_EXIT_OOM};
	tell(MP_EXIT, &m, NULL);
	assert_int_equal(ended.end, HOSTMAPS_OOM);
	begin_process(72, 3000, 1);
	m = (struct mp_exit){
		.time_ns = 9600, .start_ns = 3000, .tgid = 72, .flags = MP_EXIT_UNKNOWN};
	tell(MP_EXIT, &m, NULL);
	assert_int_equal(ended.end, HOSTMAPS_GONE);
	assert_int_equal(ended.n, 4);
}

static struct {
	uint32_t ends, seen, halves;
	const char *running;
} heard;

static void look_at_known(void *ctx, struct hostmaps_process *p)
{
	(void)ctx;
	heard.seen++;
	heard.halves += !p->comm || !p->exe || !p->args || !p->cgroup || !p->tgid || !p->start_ns ||
			!p->to_ns;
}

static void on_end_look_at_all(void *ctx, struct hostmaps_process *p)
{
	const struct hostmaps_process *now = hostmaps_running(hm, p->tgid);

	heard.ends++;
	heard.running = now ? now->comm : NULL;
	hostmaps_each_known(hm, look_at_known, ctx);
	hostmaps_each(hm, look_at_known, ctx);
}

/* A process takes another one's place by exec, and as another process under its pid; then all of it
 * is there, or nothing. */
TEST_WITH(who_hears_of_an_end_meets_whole_processes_only, set_up, tear_down)
{
	struct mp_process m = {.time_ns = 1000, .start_ns = 1000, .tgid = 70, .exec_id = 1};

	memset(&heard, 0, sizeof(heard));
	hostmaps_on_end(hm, on_end_look_at_all, NULL);
	tell(MP_PROCESS, &m, (const char *[]){"sh", "/bin/sh", "sh", "/docker/x"});
	assert_int_equal(heard.ends, 0);
	m.exec_id = 2;
	m.time_ns = 2000;
	tell(MP_PROCESS, &m, (const char *[]){"", "", "", ""});
	assert_int_equal(heard.ends, 1);
	assert_int_equal(heard.seen, 3); /* both are known, the later one runs */
	assert_string_equal(heard.running, "");
	m = (struct mp_process){.time_ns = 5000, .start_ns = 5000, .tgid = 70, .exec_id = 9};
	tell(MP_PROCESS, &m, (const char *[]){"reused", "/bin/reused", "", "/"});
	assert_int_equal(heard.ends, 2);
	assert_int_equal(heard.seen, 7);
	assert_string_equal(heard.running, "reused");
	assert_int_equal(heard.halves, 0);
}

/* `n` processes began and ended at once, three seconds ago, and were reported then. */
static void crowd(uint32_t from, uint32_t n)
{
	struct process *p, *next;

	uint64_t time = (uint64_t)clock_boot_ns() - 3 * NSEC_PER_SEC;
	const char *str[] = {"short", "/usr/bin/short", "short --of breath",
			     "/system.slice/short.service"};

	for (uint32_t i = 0; i < n; i++) {
		struct mp_process begins = {.tgid = from + i, .start_ns = time, .time_ns = time};
		struct mp_exit e = {.tgid = from + i, .start_ns = time, .time_ns = time + 1};

		tell(MP_PROCESS, &begins, str);
		tell(MP_EXIT, &e, NULL);
	}
	HASH_ITER (hh, hm->processes, p, next)
		p->ended_ns = time;
	hm->swept_ns = 0; /* it is time */
	hostmaps_sweep(hm);
}

TEST_WITH(of_a_crowd_that_has_ended_nothing_is_held, set_up, tear_down)
{
	size_t after_one;

	crowd(1000, 10000);
	assert_int_equal(HASH_COUNT(hm->processes), 0);
	assert_int_equal(HASH_COUNT(hm->newest), 0);
	after_one = mallinfo2().uordblks;
	for (int i = 0; i < 4; i++)
		crowd(1000, 10000);
	assert_in_range(mallinfo2().uordblks, 0, after_one + 65536);
	crowd(1000, 10); /* a few are kept for longer: samples of them may come */
	assert_int_equal(HASH_COUNT(hm->processes), 10);
}

TEST_WITH(one_whose_end_is_told_late_is_kept_for_what_comes_of_it, set_up, tear_down)
{
	struct mp_process m = {.tgid = 90, .start_ns = 1000, .time_ns = 1000};
	struct mp_exit e = {.tgid = 90, .start_ns = 1000, .time_ns = 2000};

	tell(MP_PROCESS, &m, (const char *[]){"late", "/bin/late", "late", "/"});
	tell(MP_EXIT, &e, NULL);
	hm->swept_ns = 0;
	hostmaps_sweep(hm);
	assert_non_null(hostmaps_process(hm, 90, 1000, 0));
}

TEST_WITH(ends_that_a_full_queue_kept_from_us_are_counted, set_up, tear_down)
{
	struct mp_watermark w = {.time_ns = 10000, .ends = 500};
	struct mp_head seeded = {0};
	struct mp_lost lost = {.time_ns = 10500};
	struct mp_exit m = {.time_ns = 10200, .start_ns = 1000, .tgid = 70};

	tell(MP_WATERMARK, &w, NULL); /* before the seed */
	tell(MP_SEEDED, &seeded, NULL);
	begin_process(70, 1000, 1);
	begin_process(71, 1000, 1);
	w.ends = 510;
	tell(MP_WATERMARK, &w, NULL);
	assert_int_equal(hostmaps_missed(hm), 0); /* what was before is not ours */
	tell(MP_EXIT, &m, NULL);
	w = (struct mp_watermark){.time_ns = 10300, .ends = 511};
	tell(MP_WATERMARK, &w, NULL);
	assert_int_equal(hostmaps_missed(hm), 0);
	tell(MP_LOST, &lost, NULL);
	tell(MP_SEEDED, &seeded, NULL); /* 71 is no more: that is one; three others came and went */
	w = (struct mp_watermark){.time_ns = 11000, .ends = 515};
	tell(MP_WATERMARK, &w, NULL);
	assert_int_equal(hostmaps_missed(hm), 3);
	w = (struct mp_watermark){.time_ns = 11100, .ends = 515};
	tell(MP_WATERMARK, &w, NULL);
	assert_int_equal(hostmaps_missed(hm), 3);
}

TEST_WITH(a_containers_name_is_known_by_its_id_and_told_anew_is_the_newer, set_up, tear_down)
{
	struct mp_container m = {0};

	assert_null(hostmaps_container(hm, "ab12"));
	tell(MP_CONTAINER, &m,
	     (const char *[]){"ab12", "web", "nginx:1", "shop", "front", "{}",
			      "2026-11-21T03:10:00Z"});
	tell(MP_CONTAINER, &m, (const char *[]){"cd34", "db", "", "", "", "", ""});
	assert_string_equal(hostmaps_container(hm, "ab12")->name, "web");
	assert_string_equal(hostmaps_container(hm, "ab12")->image, "nginx:1");
	assert_string_equal(hostmaps_container(hm, "ab12")->project, "shop");
	assert_string_equal(hostmaps_container(hm, "ab12")->started, "2026-11-21T03:10:00Z");
	assert_null(hostmaps_container(hm, "cd34")->labels);
	assert_string_equal(hostmaps_container(hm, "cd34")->name, "db");
	assert_null(hostmaps_container(hm, "cd34")->image);
	tell(MP_CONTAINER, &m, (const char *[]){"ab12", "web2", "nginx:1", "", "", "", ""});
	assert_string_equal(hostmaps_container(hm, "ab12")->name, "web2");
	assert_null(hostmaps_container(hm, "ab1"));
}

static struct hostmaps_process *used_by;
static uint64_t used_ns;

static void note_used(void *ctx, const struct mp_used *u, struct hostmaps_process *p)
{
	(void)ctx;
	used_by = p;
	used_ns += u->cpu_ns;
}

TEST_WITH(what_an_ended_process_used_is_of_its_last_program_even_when_its_pid_is_another_ones,
	  set_up, tear_down)
{
	struct mp_process next = {.tgid = 5, .start_ns = 90, .exec_id = 1, .time_ns = t0 + 40};
	const char *str[] = {"c", "/exe", "args", "/"};
	struct mp_exit gone = {.tgid = 5, .start_ns = 50, .time_ns = t0 + 30};
	struct mp_used used = {.tgid = 5, .start_ns = 50, .time_ns = t0 + 50, .cpu_ns = 7};

	used_by = NULL;
	used_ns = 0;
	hostmaps_on_used(hm, note_used, NULL);
	process(1, 10, "a");
	process(2, 20, "b");
	tell(MP_EXIT, &gone, NULL);
	tell(MP_PROCESS, &next, str);
	tell(MP_USED, &used, NULL);
	assert_non_null(used_by);
	assert_string_equal(used_by->comm, "b");
	used.start_ns = 51; /* nothing reported that one */
	tell(MP_USED, &used, NULL);
	assert_null(used_by);
	assert_int_equal(used_ns, 14);
}
