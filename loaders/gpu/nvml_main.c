/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sonde-nvml: writes what NVIDIA's management library reports of the GPUs to stdout (gpuparse.h),
 * each time a byte comes on stdin. It loads that library, so it is never linked statically. It is a
 * separate program because the library may hang, and needs none of sonde's rights. It ends at the
 * end of stdin, and also if one step takes longer than a minute.
 */
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "loaders/gpu/nvmlread.h"
#include "schema/base/cli/options.h"
#include "schema/base/clock.h"
#include "schema/base/log.h"

#define SAMPLE_NS NSEC_PER_SEC
#define STUCK_S   60

static const struct program NVML = {
	.name = "sonde-nvml",
	.usage = "[options]",
	.about =
		"Part of sonde-gpu: prints the state of NVIDIA's GPUs for each byte on standard input. Try: echo | sonde-nvml",
};

static void text_or_none(int (*ask)(char *, unsigned int), char *out, unsigned int size)
{
	out[0] = 0;
	if (!ask || ask(out, size) || !out[0])
		snprintf(out, size, "unknown");
	out[size - 1] = 0;
	out[strcspn(out, " \n")] = 0;
}

static void hello(const struct nvmlapi *api, unsigned int devices, const char *missing)
{
	char driver[80], version[80];

	text_or_none(api->driver, driver, sizeof(driver));
	text_or_none(api->version, version, sizeof(version));
	printf("driver %s\nlibrary %s\ndevices %u\n", driver, version, devices);
	if (*missing)
		printf("missing %s\n", missing);
	printf("ready\n");
	fflush(stdout);
}

/* -1: stdin has ended; 0: nothing came until `until_ns`; 1: a request came. */
static int await(int64_t until_ns)
{
	int64_t left = until_ns - clock_mono_ns();
	struct pollfd f = {.fd = STDIN_FILENO, .events = POLLIN};
	char c[16];
	ssize_t n;

	alarm(0);
	if (poll(&f, 1, left > 0 ? (int)(left / 1000000) + 1 : 0) <= 0)
		return 0;
	alarm(STUCK_S);
	n = read(STDIN_FILENO, c, sizeof(c));
	return n > 0 ? 1 : n < 0 && errno == EINTR ? 0 : -1;
}

static void serve(struct nvmlread *r)
{
	int64_t next = clock_mono_ns(), now;
	int asked = 0;

	while (asked >= 0) {
		now = clock_mono_ns();
		alarm(STUCK_S);
		if (now >= next || asked) {
			nvmlread_sample(r, now);
			next = now + SAMPLE_NS;
		}
		if (asked) {
			nvmlread_say(r, now);
			printf("end\n");
			asked = fflush(stdout) ? -1 : 0;
			continue;
		}
		asked = await(next);
	}
}

static int run(void)
{
	struct strbuf missing cleanup_strbuf = STRBUF_INIT;
	struct nvmlread *r;
	struct nvmlapi api;
	struct err e = {0};

	log_init(NVML.name, LOG_LEVEL_WARN);
	signal(SIGPIPE, SIG_DFL);
	alarm(STUCK_S);
	if (nvmlapi_open(&api, &missing, &e)) {
		printf("error %s\nfix %s\n", e.what, e.fix);
		return fflush(stdout) ? EXIT_RUNTIME : e.exit;
	}
	r = nvmlread_new(&api);
	hello(&api, nvmlread_look(r), strbuf_str(&missing));
	serve(r);
	nvmlread_free(r);
	return EXIT_OK;
}

int main(int argc, char **argv)
{
	const struct option_set none = {0};
	struct err e = {0};
	int rc = program_options(&NVML, argc, argv, &none, 1, NULL, &e);

	return rc ? program_end(NVML.name, rc, &e) : run();
}
