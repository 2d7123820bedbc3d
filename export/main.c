/* SPDX-License-Identifier: Apache-2.0 */
/* sonde-export: what the store has, in the forms of other engines. It only reads the store; what it remembers is in a folder of its own. */
#include <errno.h>
#include <getopt.h>
#include <locale.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "export/command.h"
#include "export/totals.h"
#include "schema/base/log.h"
#include "schema/store/read/reader.h"

static const char HELP[] =
	"usage: sonde-export COMMAND [options]\n"
	"What the store has, in the forms of other engines. It only reads the store.\n"
	"  metrics            Prometheus' metrics, on standard output\n"
	"  status             how many series there are, since when they count\n"
	"  --store DIR        the store's folder, or a file of it (else as sonde finds it)\n"
	"  --state DIR        where counters are kept from one time to the next\n"
	"  --openmetrics      metrics: in OpenMetrics' format\n"
	"  --series N         metrics: from so many series on new things are counted as ~other (default 5000)\n"
	"  --json             status: as JSON\n"
	"  --help             this text\n";

static const struct {
	const char *name;
	int (*run)(const struct command_args *a, struct err *e);
} COMMANDS[] = {{"metrics", command_metrics}, {"status", command_status}};

static int number_take(const char *option, const char *text, uint64_t most, uint64_t *out, struct err *e)
{
	char *end;
	unsigned long long n = strtoull(text, &end, 10);

	if (*text < '0' || *text > '9' || *end || !n || n > most)
		return err_set(e, -EINVAL, EXIT_USAGE, "--%s takes a number from 1 to %llu, not '%.60s'", option, (unsigned long long)most, text);
	*out = n;
	return 0;
}

static int option_take(struct command_args *a, int opt, bool *help, struct err *e)
{
	switch (opt) {
	case 's': a->store = optarg; return 0;
	case 'd': a->state = optarg; return 0;
	case 'o': a->openmetrics = true; return 0;
	case 'n': return number_take("series", optarg, 1000000, &a->max_series, e);
	case 'j': a->json = true; return 0;
	case 'h': *help = true; return 0;
	default: return err_set(e, -EINVAL, EXIT_USAGE, "the command line is wrong; see sonde-export --help");
	}
}

static int options_read(struct command_args *a, int argc, char **argv, bool *help, struct err *e)
{
	static const struct option known[] = {
		{"store", required_argument, NULL, 's'}, {"state", required_argument, NULL, 'd'}, {"openmetrics", no_argument, NULL, 'o'},
		{"series", required_argument, NULL, 'n'}, {"json", no_argument, NULL, 'j'}, {"help", no_argument, NULL, 'h'}, {0},
	};
	int opt, rc = 0;

	while (!rc && (opt = getopt_long(argc, argv, "", known, NULL)) != -1)
		rc = option_take(a, opt, help, e);
	return rc;
}

static int run(const struct command_args *a, int n_words, char **words, struct err *e)
{
	if (n_words > 1)
		return err_set(e, -EINVAL, EXIT_USAGE, "'%.100s' is one word too many; see sonde-export --help", words[1]);
	for (size_t i = 0; n_words && i < sizeof(COMMANDS) / sizeof(COMMANDS[0]); i++)
		if (!strcmp(COMMANDS[i].name, words[0]))
			return COMMANDS[i].run(a, e);
	return err_set(e, -EINVAL, EXIT_USAGE, n_words ? "there is no command '%.100s': metrics, status" : "which command? metrics, status%s",
		       n_words ? words[0] : "");
}

int main(int argc, char **argv)
{
	struct command_args a = {.store = store_read_dir(), .max_series = TOTALS_SERIES};
	struct err e = {0};
	bool help = false;
	int rc;

	setlocale(LC_CTYPE, "C.UTF-8");
	log_init("sonde-export", LOG_LEVEL_WARN);
	sqlite3_config(SQLITE_CONFIG_MEMSTATUS, 0);
	rc = options_read(&a, argc, argv, &help, &e);
	if (!rc && help)
		fputs(HELP, stdout);
	else if (!rc)
		rc = run(&a, argc - optind, argv + optind, &e);
	if (rc)
		return err_report(&e, "sonde");
	if (fflush(stdout) || ferror(stdout)) {
		fprintf(stderr, "sonde-export: cannot write the answer: %s\n", strerror(errno));
		return EXIT_RUNTIME;
	}
	return EXIT_OK;
}
