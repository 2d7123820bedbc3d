/* SPDX-License-Identifier: Apache-2.0 */
/* hostmaps: a sample is named by what held at its time, or by nothing. Fed with packets, no sonde-maps. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "loaders/lib/host/hostmaps.h"
#include "loaders/lib/host/hostmaps_packet.h"
#include "loaders/lib/host/mapspack.h"
#include "schema/base/clock.h"
#include "schema/base/strbuf.h"

static struct hostmaps *hm;
static uint64_t t0; /* times are of now, so that nothing is forgotten */

static int set_up(void **state)
{
	struct mp_hello hello = {.version = MP_VERSION};
	struct strbuf b = STRBUF_INIT;

	(void)state;
	hm = hostmaps_new();
	t0 = (uint64_t)clock_boot_ns();
	mapspack_add(&b, MP_HELLO, &hello, NULL);
	assert_int_equal(hostmaps_packet(hm, b.buf, b.len, -1), 0);
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
	assert_int_equal(hostmaps_packet(hm, b.buf, b.len, -1), 0);
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
	struct mp_map m = {.tgid = 5, .start_ns = 50, .exec_id = exec_id, .start = start, .end = end, .image = img,
			   .time_ns = t0 + time, .offset = 0x100};

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

static void a_frame_is_named_by_the_mapping_that_held_at_its_time(void **state)
{
	(void)state;
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

static void the_way_into_exec_is_named_by_the_old_program(void **state)
{
	(void)state;
	process(1, 0, "old");
	image(1, "/red");
	image(2, "/blue");
	map(1, 0x1000, 0x2000, 1, 1);
	process(2, 100, "new");
	map(2, 0x1000, 0x2000, 2, 100);
	assert_string_equal(at(2, 0x1100, 99), "/red"); /* exec id raised, first instruction not yet run */
	assert_string_equal(at(2, 0x1100, 100), "/blue");
	assert_string_equal(at(1, 0x1100, 50), "/red");
	assert_int_equal(hostmaps_process(hm, 5, 50, 1)->to_ns, t0 + 100);
	assert_null(hostmaps_process(hm, 5, 50, 3));
	assert_null(hostmaps_process(hm, 5, 51, 1));
}

static void after_a_loss_only_what_is_told_again_is_claimed(void **state)
{
	struct mp_lost lost = {.time_ns = t0 + 50, .records = 3};

	(void)state;
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
	assert_string_equal(at(1, 0x1100, 60), "/kept");    /* as before and after: it was there */
	assert_string_equal(at(1, 0x5100, 20), "/replaced");
	assert_string_equal(at(1, 0x5100, 60), "");         /* one or the other */
	assert_string_equal(at(1, 0x5100, 80), "/new");
}

static void a_process_that_is_not_told_again_has_ended(void **state)
{
	struct mp_lost lost = {.time_ns = t0 + 50};

	(void)state;
	process(1, 0, "a");
	seeded();
	tell(MP_LOST, &lost, NULL);
	seeded();
	assert_int_equal(hostmaps_process(hm, 5, 50, 1)->to_ns, t0 + 50);
}

static void more_that_is_known_raises_the_serial(void **state)
{
	uint32_t first;

	(void)state;
	process(1, 0, "a");
	first = hostmaps_process(hm, 5, 50, 1)->serial;
	process(1, 0, "a");
	assert_int_equal(hostmaps_process(hm, 5, 50, 1)->serial, first);
	process(1, 0, "renamed");
	assert_int_equal(hostmaps_process(hm, 5, 50, 1)->serial, first + 1);
	assert_string_equal(hostmaps_process(hm, 5, 50, 1)->comm, "renamed");
}

static void a_refused_image_is_told_once(void **state)
{
	struct mp_index m = {.id = 1, .state = MP_INDEX_REFUSED};
	const char *str[] = {"", "no ELF"};
	struct hostmaps_image *img;

	(void)state;
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

static void a_process_known_by_proc_alone_is_found_by_its_tick(void **state)
{
	struct mp_process m = {.tgid = 1, .start_ns = 30000000};
	const char *str[] = {"init", "", "", "/"};

	(void)state;
	tell(MP_PROCESS, &m, str);
	assert_non_null(hostmaps_process(hm, 1, 34567890, 12));
	assert_null(hostmaps_process(hm, 1, 44567890, 12));
}

static void another_protocol_version_is_refused(void **state)
{
	struct mp_hello hello = {.version = MP_VERSION + 1};
	struct strbuf b = STRBUF_INIT;

	(void)state;
	mapspack_add(&b, MP_HELLO, &hello, NULL);
	assert_int_equal(hostmaps_packet(hm, b.buf, b.len, -1), -EPROTO);
	strbuf_release(&b);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(a_frame_is_named_by_the_mapping_that_held_at_its_time, set_up, tear_down),
		cmocka_unit_test_setup_teardown(the_way_into_exec_is_named_by_the_old_program, set_up, tear_down),
		cmocka_unit_test_setup_teardown(after_a_loss_only_what_is_told_again_is_claimed, set_up, tear_down),
		cmocka_unit_test_setup_teardown(a_process_that_is_not_told_again_has_ended, set_up, tear_down),
		cmocka_unit_test_setup_teardown(more_that_is_known_raises_the_serial, set_up, tear_down),
		cmocka_unit_test_setup_teardown(a_refused_image_is_told_once, set_up, tear_down),
		cmocka_unit_test_setup_teardown(a_process_known_by_proc_alone_is_found_by_its_tick, set_up, tear_down),
		cmocka_unit_test_setup_teardown(another_protocol_version_is_refused, set_up, tear_down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
