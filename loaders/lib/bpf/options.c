// SPDX-License-Identifier: Apache-2.0
#include "loaders/lib/bpf/options.h"

#include <errno.h>
#include <getopt.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "loaders/lib/bpf/family.h"
#include "loaders/lib/host/rules.h"

#define FREQ_MAX 4999
#define FREQ_DEFAULT 99
#define FAMILY_OPTIONS_MAX 16
#define DURATION_MAX_NS (365ull * 86400 * 1000000000)

enum { OPT_CGROUP = 256, OPT_CONTAINER, OPT_COMM, OPT_BUCKET, OPT_ARGS, OPT_NO_LINES, OPT_SOCKET, OPT_PROGRESS, OPT_TARGETS,
       OPT_RECORDING, OPT_INCLUDE, OPT_EXCLUDE, OPT_SEGMENT_BYTES, OPT_SEGMENT_AGE, OPT_BUDGET, OPT_CHECK, OPT_JSON, OPT_FAMILY = 512 /* and on: the family's own */ };

/* The table: getopt's options and the help are made of it. */
struct option_row {
	int id;           /* < 256: also the short form */
	const char *name;
	const char *arg;  /* NULL: takes none */
	const char *help;
	bool freq_only;   /* only in families that sample by frequency */
};

static const struct option_row rows[] = {
	{'d', "duration", "TIME", "stop after 10s, 5m, 1h30m (default: until Ctrl-C)", false},
	{'F', "freq", "HZ", "samples a second on each CPU, 1..4999 (default 99)", true},
	{'p', "pid", "PID", "only this process (may be repeated)", false},
	{OPT_CGROUP, "cgroup", "PATH", "only this cgroup and those below it (may be repeated)", false},
	{OPT_CONTAINER, "container", "NAME|ID", "only this container (may be repeated)", false},
	{OPT_COMM, "comm", "NAME", "only threads and processes of this name (may be repeated)", false},
	{'s', "store", "DIR", "the store's folder (default: $SONDE_STORE, else /var/lib/sonde for root)", false},
	{OPT_BUCKET, "bucket", "1s|10s", "the store's time step (default 10s)", false},
	{OPT_ARGS, "args", "POLICY", "command lines: full, masked (default) or none", false},
	{OPT_INCLUDE, "include", "RULES", "name only these processes, all others are [excluded]: container:web-* user:www", false},
	{OPT_EXCLUDE, "exclude", "RULES", "and not these; also image:, command:, unit:; see sonde.conf(5)", false},
	{OPT_NO_LINES, "no-lines", NULL, "functions alone: no source lines, no inlined functions", false},
	{OPT_SOCKET, "maps-socket", "PATH", "use the sonde-maps that listens there (default: start one)", false},
	{OPT_PROGRESS, "progress-fd", "N", "write progress as JSON lines to this descriptor", false},
	{OPT_TARGETS, "targets-fd", "N", "of sonded: which processes to go into comes by this descriptor", false},
	{OPT_RECORDING, "recording", "N", "a number: captures that have the same one are one recording", false},
	{OPT_SEGMENT_BYTES, "segment-bytes", "N", "begin a new file of the store past this size (default 64 MiB)", false},
	{OPT_SEGMENT_AGE, "segment-age", "TIME", "and past this age (default 1h)", false},
	{OPT_BUDGET, "store-budget", "N", "bytes that the whole store may take (default: that is for sonde prune)", false},
	{OPT_CHECK, "check", NULL, "say what this host can and cannot do, and stop", false},
	{OPT_JSON, "json", NULL, "with --check: as JSON", false},
	{'v', "verbose", NULL, "say more, and show libbpf's log", false},
	{'h', "help", NULL, "this text", false},
	{'V', "version", NULL, "the version", false},
};
#define N_ROWS (sizeof(rows) / sizeof(rows[0]))

static bool row_offered(const struct family *f, const struct option_row *r)
{
	return !r->freq_only || f->has_freq;
}

static size_t family_options(const struct family *f)
{
	size_t n = 0;

	while (f->options && f->options[n].name)
		n++;
	return n;
}

static int unit_ns(const char *s, size_t len, uint64_t *ns)
{
	static const struct {
		const char *name;
		uint64_t ns;
	} units[] = {{"ms", 1000000}, {"s", 1000000000}, {"m", 60ull * 1000000000}, {"h", 3600ull * 1000000000},
		     {"d", 86400ull * 1000000000}};

	for (size_t i = 0; i < sizeof(units) / sizeof(units[0]); i++)
		if (strlen(units[i].name) == len && !memcmp(units[i].name, s, len)) {
			*ns = units[i].ns;
			return 0;
		}
	return -EINVAL;
}

int duration_parse(const char *s, uint64_t *ns)
{
	uint64_t sum = 0;

	if (!*s)
		return -EINVAL;
	while (*s) {
		size_t digits = strspn(s, "0123456789");
		size_t letters = strspn(s + digits, "abcdefghijklmnopqrstuvwxyz");
		uint64_t n = 0, unit, part;

		if (!digits || digits > 12)
			return -EINVAL;
		for (size_t i = 0; i < digits; i++)
			n = n * 10 + (uint64_t)(s[i] - '0');
		if (!letters && !s[digits] && !sum)
			unit = 1000000000;
		else if (unit_ns(s + digits, letters, &unit))
			return -EINVAL;
		if (__builtin_mul_overflow(n, unit, &part) || __builtin_add_overflow(sum, part, &sum))
			return -EINVAL;
		s += digits + letters;
	}
	if (!sum || sum > DURATION_MAX_NS)
		return -EINVAL;
	*ns = sum;
	return 0;
}

static int number_parse(const char *s, uint32_t min, uint32_t max, uint32_t *out)
{
	char *end;
	unsigned long v;

	if (*s < '0' || *s > '9')
		return -EINVAL;
	errno = 0;
	v = strtoul(s, &end, 10);
	if (errno || *end || v < min || v > max)
		return -EINVAL;
	*out = (uint32_t)v;
	return 0;
}

static int list_add(struct options_list *l, const char *name, const char *arg, struct err *e)
{
	if (!*arg)
		return err_set(e, -EINVAL, EXIT_USAGE, "--%s needs a value", name);
	if (l->n == OPTIONS_LIST_MAX)
		return err_set(e, -EINVAL, EXIT_USAGE, "--%s is given more than %d times", name, OPTIONS_LIST_MAX);
	l->items[l->n++] = arg;
	return 0;
}

static int pid_add(struct options *o, const char *arg, struct err *e)
{
	uint32_t pid;

	if (number_parse(arg, 1, INT_MAX, &pid))
		return err_set(e, -EINVAL, EXIT_USAGE, "--pid '%s' is not a process id", arg);
	if (o->n_pids == OPTIONS_LIST_MAX)
		return err_set(e, -EINVAL, EXIT_USAGE, "--pid is given more than %d times", OPTIONS_LIST_MAX);
	o->pids[o->n_pids++] = pid;
	return 0;
}

static int freq_set(struct options *o, const char *arg, struct err *e)
{
	if (number_parse(arg, 1, FREQ_MAX, &o->freq))
		return err_set(e, -EINVAL, EXIT_USAGE, "--freq '%s' is not a number from 1 to %d", arg, FREQ_MAX);
	return 0;
}

static int bucket_set(struct options *o, const char *arg, struct err *e)
{
	uint64_t ns;

	if (duration_parse(arg, &ns) || (ns != 1000000000ull && ns != 10000000000ull))
		return err_set(e, -EINVAL, EXIT_USAGE, "--bucket '%s' is neither 1s nor 10s", arg);
	o->bucket_s = (uint32_t)(ns / 1000000000);
	return 0;
}

static int rules_set(const char *name, const char *arg, const char **out, struct err *e)
{
	if (rules_check(arg)) {
		err_set(e, -EINVAL, EXIT_USAGE, "--%s '%.100s' is no list of container:, image:, command:, user: (of this host) or "
			"unit: with a pattern each", name, arg);
		err_fix(e, "--%s 'container:web-* unit:backup.service'", name);
		return -EINVAL;
	}
	*out = *arg ? arg : NULL;
	return 0;
}

static int args_set(struct options *o, const char *arg, struct err *e)
{
	if (strcmp(arg, "full") && strcmp(arg, "masked") && strcmp(arg, "none"))
		return err_set(e, -EINVAL, EXIT_USAGE, "--args '%s' is not full, masked or none", arg);
	o->args = arg;
	return 0;
}

static int recording_set(struct options *o, const char *arg, struct err *e)
{
	char *end;

	errno = 0;
	o->recording = strtoull(arg, &end, 10);
	if (errno || *end || *arg < '0' || *arg > '9' || o->recording > INT64_MAX)
		return err_set(e, -EINVAL, EXIT_USAGE, "--recording '%s' is not a number below 2^63", arg);
	return 0;
}

static int bytes_set(uint64_t *bytes, const char *name, const char *arg, struct err *e)
{
	char *end;

	errno = 0;
	*bytes = strtoull(arg, &end, 10);
	if (errno || *end || *arg < '0' || *arg > '9' || !*bytes)
		return err_set(e, -EINVAL, EXIT_USAGE, "--%s '%s' is not a number of bytes", name, arg);
	return 0;
}

static int segment_age_set(struct options *o, const char *arg, struct err *e)
{
	uint64_t ns;

	if (duration_parse(arg, &ns) || ns < 1000000000ull)
		return err_set(e, -EINVAL, EXIT_USAGE, "--segment-age '%s' is not a time of a second or more", arg);
	o->segment_s = (uint32_t)(ns / 1000000000);
	return 0;
}

static int fd_set_(int *out, const char *name, const char *arg, struct err *e)
{
	uint32_t fd;

	if (number_parse(arg, 0, 1 << 20, &fd))
		return err_set(e, -EINVAL, EXIT_USAGE, "--%s '%s' is not a descriptor", name, arg);
	*out = (int)fd;
	return 0;
}

static int duration_set(struct options *o, const char *arg, struct err *e)
{
	if (duration_parse(arg, &o->duration_ns)) {
		err_set(e, -EINVAL, EXIT_USAGE, "--duration '%s' is not a time", arg);
		err_fix(e, "write it like 10s, 5m or 1h30m");
		return -EINVAL;
	}
	return 0;
}

static int option_apply(const struct family *f, struct options *o, int id, const char *arg, struct err *e)
{
	if (id >= OPT_FAMILY)
		return f->options[id - OPT_FAMILY].set(arg, e);
	switch (id) {
	case 'd': return duration_set(o, arg, e);
	case 'F': return freq_set(o, arg, e);
	case 'p': return pid_add(o, arg, e);
	case OPT_CGROUP: return list_add(&o->cgroups, "cgroup", arg, e);
	case OPT_CONTAINER: return list_add(&o->containers, "container", arg, e);
	case OPT_COMM: return list_add(&o->comms, "comm", arg, e);
	case OPT_BUCKET: return bucket_set(o, arg, e);
	case OPT_ARGS: return args_set(o, arg, e);
	case OPT_INCLUDE: return rules_set("include", arg, &o->include, e);
	case OPT_EXCLUDE: return rules_set("exclude", arg, &o->exclude, e);
	case OPT_NO_LINES: o->no_lines = true; return 0;
	case OPT_PROGRESS: return fd_set_(&o->progress_fd, "progress-fd", arg, e);
	case OPT_TARGETS: return fd_set_(&o->targets_fd, "targets-fd", arg, e);
	case OPT_RECORDING: return recording_set(o, arg, e);
	case OPT_SEGMENT_BYTES: return bytes_set(&o->segment_bytes, "segment-bytes", arg, e);
	case OPT_BUDGET: return bytes_set(&o->budget_bytes, "store-budget", arg, e);
	case OPT_SEGMENT_AGE: return segment_age_set(o, arg, e);
	case 's': o->store = arg; return 0;
	case OPT_SOCKET: o->maps_socket = arg; return 0;
	case OPT_CHECK: o->check = true; return 0;
	case OPT_JSON: o->json = true; return 0;
	case 'v': o->verbose = true; return 0;
	case 'h': o->help = true; return 0;
	case 'V': o->version = true; return 0;
	}
	return -EINVAL;
}

static void getopt_tables(const struct family *f, struct option *longs, char *shorts)
{
	*shorts++ = '+'; /* stop at the first word: it belongs to nobody */
	*shorts++ = ':'; /* tell a missing value from an unknown option */
	for (size_t i = 0; i < N_ROWS; i++) {
		if (!row_offered(f, &rows[i]))
			continue;
		*longs++ = (struct option){rows[i].name, rows[i].arg ? required_argument : no_argument, NULL,
					   rows[i].id};
		if (rows[i].id < 256) {
			*shorts++ = (char)rows[i].id;
			if (rows[i].arg)
				*shorts++ = ':';
		}
	}
	for (size_t i = 0; i < family_options(f); i++)
		*longs++ = (struct option){f->options[i].name, f->options[i].arg ? required_argument : no_argument, NULL,
					   OPT_FAMILY + (int)i};
	*longs = (struct option){0};
	*shorts = '\0';
}

static int usage_error(const struct family *f, struct err *e, const char *what, const char *word)
{
	err_set(e, -EINVAL, EXIT_USAGE, "%s '%s'", what, word);
	err_fix(e, "sonde-%s --help", f->name);
	return -EINVAL;
}

static int options_consistent(const struct family *f, const struct options *o, struct err *e)
{
	if (o->json && !o->check)
		return err_set(e, -EINVAL, EXIT_USAGE, "--json goes with --check");
	if (o->command && (o->n_pids || o->cgroups.n || o->containers.n || o->comms.n)) {
		err_set(e, -EINVAL, EXIT_USAGE, "`-- command` and --pid, --cgroup, --container, --comm exclude each other");
		err_fix(e, "sonde-%s --help", f->name);
		return -EINVAL;
	}
	return 0;
}

/* What follows the options: nothing, or `-- command args`. */
static int command_set(const struct family *f, int argc, char **argv, struct options *o, struct err *e)
{
	bool dashes = optind > 1 && !strcmp(argv[optind - 1], "--");

	if (optind < argc && !dashes)
		return usage_error(f, e, "unexpected word", argv[optind]);
	if (dashes && optind == argc)
		return err_set(e, -EINVAL, EXIT_USAGE, "no command after `--`");
	if (optind < argc)
		o->command = argv + optind;
	return 0;
}

int options_parse(const struct family *f, int argc, char **argv, struct options *out, struct err *e)
{
	struct options o = {.freq = f->has_freq ? FREQ_DEFAULT : 0, .bucket_s = 10, .args = "masked", .progress_fd = -1, .targets_fd = -1};
	struct option longs[N_ROWS + FAMILY_OPTIONS_MAX + 1];
	char shorts[2 * N_ROWS + 3];
	int id, err;

	getopt_tables(f, longs, shorts);
	opterr = 0;
	optind = 0;
	for (;;) {
		int at = optind > 0 ? optind : 1;

		id = getopt_long(argc, argv, shorts, longs, NULL);
		if (id == -1)
			break;
		if (id == ':')
			return usage_error(f, e, "a value is missing after", argv[optind - 1]);
		if (id == '?')
			return usage_error(f, e, "unknown option", argv[at]);
		err = option_apply(f, &o, id, optarg, e);
		if (err)
			return err;
	}
	err = command_set(f, argc, argv, &o, e);
	if (!err)
		err = options_consistent(f, &o, e);
	if (!err)
		*out = o;
	return err;
}

static void help_row(FILE *out, const char *shorts, const char *name, const char *arg, const char *help)
{
	char left[40];

	snprintf(left, sizeof(left), "--%s%s%s", name, arg ? " " : "", arg ? arg : "");
	fprintf(out, "  %s%-22s %s\n", shorts, left, help);
}

void options_help(const struct family *f, FILE *out)
{
	fprintf(out, "sonde-%s: %s\n\n", f->name, f->summary);
	fprintf(out, "  sonde-%s --duration 10s                 the whole host\n", f->name);
	fprintf(out, "  sonde-%s --pid 812 --duration 1m        one process\n", f->name);
	fprintf(out, "  sonde-%s -- make -j4                    a command and its children\n", f->name);
	fprintf(out, "  sonde-%s --check                        what this host can do\n\nOptions:\n", f->name);
	for (size_t i = 0; i < family_options(f); i++)
		help_row(out, "    ", f->options[i].name, f->options[i].arg, f->options[i].help);
	for (size_t i = 0; i < N_ROWS; i++) {
		char shorts[8] = "    ";

		if (!row_offered(f, &rows[i]))
			continue;
		if (rows[i].id < 256)
			snprintf(shorts, sizeof(shorts), "-%c, ", rows[i].id);
		help_row(out, shorts, rows[i].name, rows[i].arg, rows[i].help);
	}
	fprintf(out, "\nWhat it saw is in the store; ask with `sonde`. Exit: 0 ok, 1 failed, 2 usage, 3 kernel lacks something,\n"
		     "5 permission, 6 store, 130 interrupted before any data.\n");
}
