/* SPDX-License-Identifier: Apache-2.0 */
#include "schema/families/families.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

/* `record` records only cpu by default: each further family adds its cost, which `sonde status`
 * shows once it has been measured on this host. sonded also records host: 0.3 % of a core with 30
 * containers and 500 processes. The order is that of value: where sonde takes too much, sonded
 * stops later ones first (supervisor/limits/load_shed.h). */
/* clang-format off */
static const struct family_setting HOST_SETTINGS[] = {
	{{"log-lines", .words = "on|off", .fallback = "on", .like = "on or off",
	  .help = "on: when a container fails, store the last 20 lines of its log, with secrets masked"},
	 .option = "--log-lines"},
	{{"fills", .words = "on|off", .fallback = "on", .like = "on or off",
	  .help = "on: when a file system is nearly full, look for the files that fill it, at most once in 10 minutes"},
	 .option = "--fills"},
	{{0}},
};

static const struct family_setting DISK_SETTINGS[] = {
	{{"file-calls", .words = "on|off", .fallback = "on", .like = "on or off",
	  .help = "on: family disk also records fsync by file, opens that fail and waits for locks"},
	 .option = "--file-calls"},
	{{"file-reads", .words = "on|off", .fallback = "on", .like = "on or off",
	  .help = "on: family disk also records reads and writes of files, as programs feel them"},
	 .option = "--file-reads"},
	{{0}},
};

static const struct family_setting MEM_SETTINGS[] = {
	{{"pages", .words = "off|on", .fallback = "off", .like = "on or off",
	  .help = "on: family mem also records all pages of the host that are in use, the kernel's too; costs 0.1 us a page"},
	 .option = "--pages"},
	{{0}},
};

static const struct family_setting GPU_SETTINGS[] = {
	{{"gpu", .words = "auto|on|off", .fallback = "auto", .like = "auto, on or off",
	  .help = "on: record GPUs (same as adding gpu to families); auto: only if there is a GPU driver and families is not set"},
	 .enables = true, .auto_file = "/proc/driver/nvidia/version"},
	{{0}},
};

static const struct family_setting SCRAPE_SETTINGS[] = {
	{{"scrape", SETTING_LIST, .words = "on|off", .list = "cpu|heap|goroutine|block|mutex", .fallback = "off",
	  .like = "on, off, or of cpu, heap, goroutine, block, mutex, with commas",
	  .help = "on: record what Go programs serve at /debug/pprof (same as adding scrape to families), all but cpu; or a list of profiles"},
	 .enables = true, .option = "--profiles"},
	{{0}},
};

static const struct family_setting L7_SETTINGS[] = {
	{{"requests", .words = "on|off", .fallback = "off", .like = "on or off", .help = "on: record requests (same as adding l7 to families)"},
	 .enables = true},
	{{0}},
};

static const struct family_setting PROBE_SETTINGS[] = {
	{{"probes", SETTING_PROBES, .fallback = "off", .like = "off, or probes as of sonde record --probe, with | between them",
	  .help = "probes to record (adds probe to families): exec | openfail | mine=syscall:openat(path=str $2) ret<0"},
	 .enables = true, .option = "--probe"},
	{{0}},
};

static const struct family_setting LOGS_SETTINGS[] = {
	{{"logs", .words = "on|off", .fallback = "off", .like = "on or off",
	  .help = "on: count lines of logs, and errors by their words (same as adding logs to families)"},
	 .enables = true},
	{{"log-text", .words = "on|off", .fallback = "on", .like = "on or off",
	  .help = "off: family logs stores counts alone, no word of a log"},
	 .option = "--text"},
	{{"log-files", SETTING_PATHS, .fallback = "", .like = "paths that begin with /, or patterns of them, with blanks between", .empty = true,
	  .help = "files that family logs also reads: /var/log/nginx/*.log /srv/app/app.log"},
	 .option = "--files"},
	{{0}},
};

static const struct family_setting JAVA_SETTINGS[] = {
	{{"java", SETTING_RULES, .fallback = "off",
	  .like = "off, or a list of container:, image:, command:, user: (of this host) or unit: with a pattern each",
	  .help = "Java programs to record from inside (adds java to families): container:web-* user:tomcat; see sonde-java(8)"},
	 .enables = true, .option = "--choose"},
	{{"java-tls", .words = "off|on|only", .fallback = "off", .like = "off, on or only",
	  .help = "on: load an agent into these programs, which shows the requests inside Java's TLS to family l7; only: and record nothing else"},
	 .option = "--tls"},
	{{0}},
};

static const struct family_less OFFCPU_LESS[] = {
	{"fewer stacks, exact sums", "took fewer stacks", "sums are exact, some are under [no stack]"},
	{"fewer stacks, exact sums", "took fewer stacks", "sums are exact, some are under [no stack]"},
	{"no stacks, exact sums", "took no stacks", "sums are exact, all are under [no stack]"},
};

static const struct family_less MEM_LESS[] = {
	{"1 in 4 of its samples", "took 1 in 4 of its samples of page faults", "amounts are right, but what rarely grows may be missing"},
	{"1 in 16 of its samples", "took 1 in 16 of its samples of page faults", "amounts are right, but what rarely grows may be missing"},
};

static const struct family_less DISK_LESS[] = {
	{"1 in 4 reads and writes of files", "looked at 1 in 4 reads and writes of files",
	 "how many these are, their bytes and times are estimates; requests of disks are exact"},
	{"1 in 16 reads and writes of files", "looked at 1 in 16 reads and writes of files",
	 "how many these are, their bytes and times are estimates; requests of disks are exact"},
};

static const struct family_less NET_LESS[] = {
	{"1 in 4 messages of Unix and UDP sockets", "looked at 1 in 4 messages of Unix and UDP sockets",
	 "their bytes are estimates; TCP connections are exact"},
	{"1 in 16 messages of Unix and UDP sockets", "looked at 1 in 16 messages of Unix and UDP sockets",
	 "their bytes are estimates; TCP connections are exact"},
};

static const struct family_less L7_LESS[] = {
	{"requests of 1 in 4 connections", "read 1 in 4 connections", "the requests of the others are missing"},
	{"requests of 1 in 16 connections", "read 1 in 16 connections", "the requests of the others are missing"},
};

/* The Makefile reads names from here: each entry begins with .name. */
const struct probe_family FAMILIES[] = {
	{.name = "cpu", .by_default = true, .always = true, .has_freq = true, .has_ring = true, .steps = 3, .event = "sample",
	 .nothing = "no samples: nothing that was asked for ran on a CPU"},
	{.name = "offcpu", .has_ring = true, .event = "event", .steps = 3, .less = OFFCPU_LESS, .by_switches = true, .standing = true},
	{.name = "mem", .has_pages = true, .steps = 2, .less = MEM_LESS, .event = "page fault", .settings = MEM_SETTINGS,
	 .nothing = "no page faults: no process that was asked for touched new memory"},
	{.name = "goheap", .has_mode = true, .rights = FAMILY_LOADS, .event = "event",
	 .nothing = "no heap profiles: no Go program that may be read ran"},
	{.name = "host", .always = true, .rights = FAMILY_READS, .event = "row", .settings = HOST_SETTINGS},
	{.name = "disk", .steps = 2, .less = DISK_LESS, .event = "row", .settings = DISK_SETTINGS, .shown_by = "disk",
	 .nothing = "no requests of disks: nothing that was asked for read or wrote one"},
	{.name = "gpu", .rights = FAMILY_READS, .event = "row", .settings = GPU_SETTINGS},
	{.name = "scrape", .rights = FAMILY_READS, .event = "event", .settings = SCRAPE_SETTINGS,
	 .nothing = "no profiles: no Go program offered one; sonde sql \"SELECT comm, pid, reason FROM scraped\" says why"},
	{.name = "net", .steps = 2, .less = NET_LESS, .rights = FAMILY_LOADS, .event = "row", .shown_by = "net"},
	{.name = "l7", .word = "requests", .steps = 2, .less = L7_LESS, .has_ring = true, .rights = FAMILY_LOADS, .event = "event", .settings = L7_SETTINGS, .shown_by = "requests"},
	{.name = "probe", .rights = FAMILY_PROBES, .event = "event", .settings = PROBE_SETTINGS,
	 .nothing = "no hits: nothing that was asked for came to these places"},
	{.name = "logs", .has_ring = true, .rights = FAMILY_READS, .event = "row", .settings = LOGS_SETTINGS,
	 .nothing = "no lines: nothing whose log is known wrote one"},
	{.name = "java", .has_tls = true, .rights = FAMILY_ATTACHES, .event = "event", .settings = JAVA_SETTINGS,
	 .nothing = "nothing of Java: sonde sql \"SELECT comm, pid, state, reason FROM java_recorded\" says why"},
	{0},
};
/* clang-format on */

size_t families_count(void)
{
	size_t n = 0;

	while (FAMILIES[n].name)
		n++;
	return n;
}

const struct probe_family *family_named(const char *name)
{
	for (const struct probe_family *f = FAMILIES; f->name; f++)
		if (!strcmp(f->name, name) || (f->word && !strcmp(f->word, name)))
			return f;
	return NULL;
}

const struct family_less *family_less(const struct probe_family *f, unsigned int step)
{
	return f && f->less && step && step <= f->steps ? &f->less[step - 1] : NULL;
}

const char *families_always(void)
{
	static char list[16 * FAMILIES_MAX];
	size_t len = 0;

	for (const struct probe_family *f = FAMILIES; f->name && len < sizeof(list); f++)
		if (f->always)
			len += (size_t)snprintf(list + len, sizeof(list) - len, "%s%s",
						len ? "," : "", f->name);
	return list;
}

static int unknown(const char *name, struct err *e)
{
	char known[128] = "";
	size_t len = 0;

	for (const struct probe_family *f = FAMILIES; f->name && len < sizeof(known); f++)
		len += (size_t)snprintf(known + len, sizeof(known) - len, "%s%s", len ? ", " : "",
					f->name);
	err_set(e, -EINVAL, EXIT_USAGE, "unknown family '%.40s': known are %s", name, known);
	err_fix(e, "sudo sonde record --families cpu");
	return -EINVAL;
}

int families_of(const char *list, const struct probe_family **out, size_t *n, struct err *e)
{
	char name[40];

	*n = 0;
	for (const struct probe_family *f = FAMILIES; !list && f->name; f++)
		if (f->by_default)
			out[(*n)++] = f;
	while (list) {
		size_t len = strcspn(list, ",");
		const struct probe_family *f;
		bool again = false;

		snprintf(name, sizeof(name), "%.*s", (int)len, list);
		f = len < sizeof(name) ? family_named(name) : NULL;
		if (!f)
			return unknown(name, e);
		for (size_t i = 0; i < *n; i++)
			again = again || out[i] == f;
		if (!again)
			out[(*n)++] = f;
		list = list[len] ? list + len + 1 : NULL;
	}
	return 0;
}

const struct family_setting *family_setting(size_t n, const struct probe_family **of)
{
	for (const struct probe_family *f = FAMILIES; f->name; f++)
		for (const struct family_setting *s = f->settings; s && s->setting.name; s++) {
			if (n--)
				continue;
			if (of)
				*of = f;
			return s;
		}
	return NULL;
}
