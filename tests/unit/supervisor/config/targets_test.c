/* SPDX-License-Identifier: Apache-2.0 */
/* targets: which processes a loader gets, by what it wants and what runs. The test takes the place
 * of sonde-maps and reports at its socket what runs. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "loaders/lib/host/maps/mapspack.h"
#include "loaders/lib/host/maps/mapsproto.h"
#include "schema/base/clock.h"
#include "schema/base/strbuf.h"
#include "supervisor/config/targets.h"
#include "tests/unit/test.h"

enum { LIBSSL, ALL, LOADERS };
enum { PLAIN_ID = 1, SSL_ID, LIKE_ID }; /* images */

static char dir[] = "/tmp/sonde-targets-XXXXXX", path[64];
static struct targets *targets;
static struct service loader[LOADERS];
static struct conf conf;
static int listener, maps = -1, given[LOADERS];

static void tell(uint32_t type, const void *m, const char *const *str)
{
	struct strbuf b = STRBUF_INIT;

	mapspack_add(&b, type, m, str);
	assert_int_equal(send(maps, b.buf, b.len, 0), b.len);
	strbuf_release(&b);
}

static void process(uint32_t pid, const char *comm, const char *exe)
{
	struct mp_process m = {.tgid = pid,
			       .start_ns = 10 * pid,
			       .exec_id = 1,
			       .time_ns = (uint64_t)clock_boot_ns(),
			       .uid = 65534};
	const char *str[] = {comm, exe, "", "/"};

	tell(MP_PROCESS, &m, str);
}

static void image(uint32_t id, const char *file)
{
	struct mp_image m = {.id = id};
	const char *str[] = {file};

	tell(MP_IMAGE, &m, str);
}

static void map(uint32_t pid, uint32_t id, uint64_t start)
{
	struct mp_map m = {.tgid = pid,
			   .start_ns = 10 * pid,
			   .exec_id = 1,
			   .start = start,
			   .end = start + 0x1000,
			   .image = id,
			   .time_ns = (uint64_t)clock_boot_ns()};

	tell(MP_MAP, &m, NULL);
}

/* One turn of sonded's loop, no sooner than allowed; returns the targets added and removed since.
 */
static void turn(void)
{
	usleep(420000);
	targets_tick(targets, &conf, dir, path, loader, LOADERS);
}

static const char *told(int i)
{
	static char text[2][1024];
	static int next;
	char *out = text[next++ % 2];
	ssize_t n = read(given[i], out, sizeof(text[0]) - 1);

	out[n > 0 ? n : 0] = '\0';
	return out;
}

static int begin(void **state)
{
	static const char *const wants[LOADERS] = {"libssl", "all"};
	struct sockaddr_un a = {.sun_family = AF_UNIX};
	struct mp_hello hello = {.version = MP_VERSION};

	(void)state;
	if (!mkdtemp(dir))
		return -1;
	snprintf(path, sizeof(path), "%s/maps.sock", dir);
	strcpy(a.sun_path, path);
	listener = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	if (bind(listener, (void *)&a, sizeof(a)) || listen(listener, 1))
		return -1;
	targets = targets_new();
	for (int i = 0; i < LOADERS; i++) {
		loader[i] = (struct service){.pid = 1};
		strcpy(loader[i].wants, wants[i]);
		given[i] = targets_begin(targets, &loader[i]);
		fcntl(given[i], F_SETFL, O_NONBLOCK);
	}
	targets_tick(targets, &conf, dir, path, loader, LOADERS);
	maps = accept(listener, NULL, NULL);
	tell(MP_HELLO, &hello, NULL);
	image(PLAIN_ID, "/usr/bin/plain");
	image(SSL_ID, "/usr/lib/x86_64-linux-gnu/libssl.so.3");
	image(LIKE_ID, "/usr/lib/libssl3.so"); /* Mozilla's, another library */
	process(5, "plain", "/usr/bin/plain");
	map(5, PLAIN_ID, 0x1000);
	map(5, LIKE_ID, 0x8000);
	process(6, "secure", "/usr/bin/plain");
	map(6, PLAIN_ID, 0x1000);
	map(6, SSL_ID, 0x8000);
	process(7, "kworker", "");
	tell(MP_SEEDED, &(struct mp_head){0}, NULL);
	tell(MP_WATERMARK, &(struct mp_watermark){.time_ns = (uint64_t)clock_boot_ns()}, NULL);
	return 0;
}

static int end(void **state)
{
	(void)state;
	targets_free(targets);
	for (int i = 0; i < LOADERS; i++)
		close(given[i]);
	close(maps);
	close(listener);
	unlink(path);
	return rmdir(dir);
}

TEST(each_is_given_what_it_wants_and_what_ended_or_is_excluded_is_taken_back)
{
	struct mp_exit gone = {.tgid = 6, .start_ns = 60};

	turn();
	assert_string_equal(told(LIBSSL), "+6 60 1\n");
	assert_int_equal(targets_given(targets, &loader[LIBSSL]), 1);
	assert_int_equal(targets_given(targets, &loader[ALL]),
			 2); /* a kernel thread is no target */
	assert_int_equal(strlen(told(ALL)), strlen("+5 50 1\n+6 60 1\n"));

	map(5, SSL_ID, 0x10000); /* it loads the library later */
	gone.time_ns = (uint64_t)clock_boot_ns();
	tell(MP_EXIT, &gone, NULL);
	turn();
	assert_string_equal(told(LIBSSL), "+5 50 1\n-6 60 1\n");
	assert_string_equal(told(ALL), "-6 60 1\n");

	strcpy(conf.value[CONF_EXCLUDE].text, "command:plain");
	turn();
	assert_string_equal(told(LIBSSL), "-5 50 1\n");
	assert_string_equal(told(ALL), "-5 50 1\n");
	assert_int_equal(targets_given(targets, &loader[ALL]), 0);
}

const struct test_group test_group = {begin, end};
