/* SPDX-License-Identifier: Apache-2.0 */
#include "loaders/lib/bpf/start/options.h"

#include <errno.h>
#include <limits.h>

#include "loaders/lib/bpf/family.h"
#include "loaders/lib/host/names/rules.h"
#include "schema/base/clock.h"
#include "schema/base/strbuf.h"

#define FREQ_MAX        4999
#define FREQ_DEFAULT    99
#define TIMES_MAX       64 /* of a repeated option */
#define FD_MAX          (1 << 20)
#define DURATION_MAX_NS (365ull * 86400 * NSEC_PER_SEC)

static const struct option FREQ_OPTIONS[] = {
	{"freq", 'F', OPTION_UINT, "HZ", "samples a second on each CPU, 1..4999 (default 99)",
	 OPTION_AT(struct options, freq), .min = 1, .max = FREQ_MAX},
	{0},
};

#define AT(field) OPTION_AT(struct options, field)
/* clang-format off */
static const struct option LOADER_OPTIONS[] = {
	{"duration", 'd', OPTION_DURATION, "TIME", "stop after 10s, 5m, 1h30m (default: until Ctrl-C)", AT(duration_ns), .max = DURATION_MAX_NS},
	{"finish", 0, OPTION_DURATION, "TIME", "then wait up to this long for files that are still being read (default: 5s, half a second after Ctrl-C)", AT(finish_ns), .max = DURATION_MAX_NS},
	{"pid", 'p', OPTION_NUMBERS, "PID", "only this process (may be repeated)", AT(pids), .min = 1, .max = INT_MAX},
	{"cgroup", 0, OPTION_LIST, "PATH", "only this cgroup and those below it (may be repeated)", AT(cgroups), .min = 1, .max = TIMES_MAX},
	{"container", 0, OPTION_LIST, "NAME|ID", "only this container (may be repeated)", AT(containers), .min = 1, .max = TIMES_MAX},
	{"comm", 0, OPTION_LIST, "NAME", "only threads and processes of this name (may be repeated)", AT(comms), .min = 1, .max = TIMES_MAX},
	{"store", 's', OPTION_STRING, "DIR", "store folder (default: $SONDE_STORE, else /var/lib/sonde for root)", AT(store)},
	{"bucket", 0, OPTION_WORD, "1s|10s", "the store's time step (default 10s)", AT(bucket)},
	{"args", 0, OPTION_WORD, "full|masked|none", "command lines (default masked)", AT(args)},
	{"include", 0, OPTION_STRING, "RULES", "show only these processes, all others as [excluded]: container:web-* user:www", AT(include)},
	{"exclude", 0, OPTION_STRING, "RULES", "never show these; also image:, command:, unit:; see sonde.conf(5)", AT(exclude)},
	{"no-lines", 0, OPTION_FLAG, NULL, "functions only: no source lines, no inlined functions", AT(no_lines)},
	{"maps-socket", 0, OPTION_STRING, "PATH", "use the sonde-maps that listens there (default: start one)", AT(maps_socket)},
	{"progress-fd", 0, OPTION_UINT, "N", "write progress as JSON lines to this descriptor", AT(progress_fd), .max = FD_MAX},
	{"targets-fd", 0, OPTION_UINT, "N", "for sonded: read from this descriptor which processes to look into", AT(targets_fd), .max = FD_MAX},
	{"apart", 0, OPTION_FLAG, NULL, "for sonde record, which passes signals on: begin a session, with the weight of nice -10", AT(apart)},
	{"recording", 0, OPTION_UINT, "N", "a number: captures with the same number are one recording", AT(recording), .max = INT64_MAX},
	{"segment-bytes", 0, OPTION_BYTES, "N", "start a new segment of the store after this size (default 64 MiB)", AT(segment_bytes)},
	{"segment-age", 0, OPTION_DURATION, "TIME", "and after this time (default 1h)", AT(segment_ns), .min = NSEC_PER_SEC, .max = DURATION_MAX_NS},
	{"store-budget", 0, OPTION_BYTES, "N", "limit the whole store to this size (default: left to sonde prune)", AT(budget_bytes)},
	{"flight", 0, OPTION_STRING, "DIR", "for sonded: put what is by the second also into a ring in this folder; --flight-share N, --flight-bytes N", AT(flight)},
	{"flight-share", 0, OPTION_UINT, "N", NULL, /* one sample in N goes to the store */ AT(flight_share), .min = 1, .max = FREQ_MAX},
	{"flight-bytes", 0, OPTION_BYTES, "N", NULL, /* the ring's size */ AT(flight_bytes)},
	{"check", 0, OPTION_FLAG, NULL, "report what this host supports, and exit", AT(check)},
	{"json", 0, OPTION_FLAG, NULL, "with --check: print JSON", AT(json)},
	{"verbose", 'v', OPTION_FLAG, NULL, "log more, also libbpf's messages", AT(verbose)},
	{0},
};
/* clang-format on */

static const char MORE[] =
	"The results are in the store; query them with `sonde`. Exit: 0 ok, 1 failed, 2 usage, 3 kernel lacks something,\n"
	"5 permission, 6 store, 130 interrupted before any data.";

static int check_rules(const char *name, const char **rules, struct err *e)
{
	if (*rules && !**rules)
		*rules = NULL;
	if (!*rules || !rules_check(*rules))
		return 0;
	err_set(e, -EINVAL, EXIT_USAGE,
		"--%s '%.100s' is no list of container:, image:, command:, user: (of this host) or "
		"unit: with a pattern each",
		name, *rules);
	err_fix(e, "--%s 'container:web-* unit:backup.service'", name);
	return -EINVAL;
}

static int check_together(struct options *o, struct err *e)
{
	if (check_rules("include", &o->include, e) || check_rules("exclude", &o->exclude, e))
		return -EINVAL;
	if (o->json && !o->check)
		return err_set(e, -EINVAL, EXIT_USAGE, "--json goes with --check");
	if (o->words.dashes && !o->words.n)
		return err_set(e, -EINVAL, EXIT_USAGE, "no command after `--`");
	if (o->words.n && (o->pids.n || o->cgroups.n || o->containers.n || o->comms.n))
		return err_set(
			e, -EINVAL, EXIT_USAGE,
			"`-- command` and --pid, --cgroup, --container, --comm exclude each other");
	return 0;
}

static void sets_of(const struct family *f, struct options *o, struct option_set sets[3])
{
	sets[0] = f->options;
	sets[1] = (struct option_set){f->has_freq ? FREQ_OPTIONS : NULL, o};
	sets[2] = (struct option_set){LOADER_OPTIONS, o};
}

int loader_options_read(const struct family *f, const char *prog, int argc, char **argv,
			struct options *o, struct err *e)
{
	struct strbuf about cleanup_strbuf = STRBUF_INIT;
	struct option_set sets[3];
	struct program p = {
		.name = prog, .usage = "[options] [-- COMMAND]", .more = MORE, .command = true};
	int rc;

	*o = (struct options){.freq = f->has_freq ? FREQ_DEFAULT : 0,
			      .bucket = "10s",
			      .args = "masked",
			      .progress_fd = -1,
			      .targets_fd = -1};
	strbuf_addf(
		&about,
		"%s\n\n  %s --duration 10s                 the whole host\n  %s --pid 812 --duration 1m        one process\n"
		"  %s -- make -j4                    a command and its children\n  %s --check                        what this host can do",
		f->summary, prog, prog, prog, prog);
	p.about = strbuf_str(&about);
	sets_of(f, o, sets);
	rc = program_options(&p, argc, argv, sets, 3, &o->words, e);
	if (!rc)
		rc = check_together(o, e);
	if (rc < 0 && e && !e->fix[0])
		err_fix(e, "%s --help", prog);
	o->bucket_s = o->bucket[1] == '0' ? 10 : 1;
	o->segment_s = (uint32_t)(o->segment_ns / NSEC_PER_SEC);
	o->command = o->words.n ? o->words.items : NULL;
	return rc;
}

void loader_options_release(const struct family *f, struct options *o)
{
	struct option_set sets[3];

	sets_of(f, o, sets);
	options_release(sets, 3, &o->words);
}
