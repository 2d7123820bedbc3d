/* SPDX-License-Identifier: Apache-2.0 */
/* program: the command line of a program that has no verbs (options.h). */
#include <errno.h>
#include <string.h>

#include "schema/base/cli/options.h"
#include "schema/base/version.h"

struct asked {
	bool help, version;
};

static const struct option ASKED[] = {
	{"help", 'h', OPTION_FLAG, NULL, "this text", OPTION_AT(struct asked, help)},
	{"version", 'V', OPTION_FLAG, NULL, "the version", OPTION_AT(struct asked, version)},
	{0},
};

static void print_help(const struct program *p, const struct option_set *sets, size_t n)
{
	printf("usage: %s %s\n%s\n\noptions:\n", p->name, p->usage, p->about);
	for (size_t i = 0; i < n; i++)
		options_print(sets[i].table, stdout);
	if (p->more)
		printf("\n%s\n", p->more);
}

static int check_words(const struct program *p, const struct option_words *w, struct err *e)
{
	if ((p->command ? w->n_before_dashes : w->n) > p->words)
		return err_set(e, -EINVAL, EXIT_USAGE,
			       p->words ? "'%.100s' is one word too many" :
					  "it takes options only, and no '%.100s'",
			       w->items[p->words]);
	return 0;
}

int program_options(const struct program *p, int argc, char **argv, const struct option_set *sets,
		    size_t n_sets, struct option_words *words, struct err *e)
{
	struct option_set all[PROGRAM_SETS];
	struct option_words none = {0}, *w = words ? words : &none;
	struct asked asked = {0};
	int rc;

	memcpy(all, sets, n_sets * sizeof(*sets));
	all[n_sets] = (struct option_set){ASKED, &asked};
	rc = options_parse(argc, argv, all, n_sets + 1, w, e);
	if (!rc && asked.help) {
		print_help(p, all, n_sets + 1);
		rc = 1;
	} else if (!rc && asked.version) {
		printf("%s %s\n", p->name, SONDE_VERSION);
		rc = 1;
	}
	if (!rc)
		rc = check_words(p, w, e);
	if (rc < 0)
		err_fix(e, "%s --help", p->name);
	options_release(NULL, 0, &none);
	return rc;
}

int program_flush(bool failed, struct err *e)
{
	if (!failed && !fflush(stdout) && !ferror(stdout))
		return 0;
	return err_set(e, -EIO, EXIT_RUNTIME, "cannot write standard output: %s", strerror(errno));
}

int program_end(const char *prog, int rc, struct err *e)
{
	if (rc >= 0 && program_flush(false, e))
		rc = -EIO;
	return rc < 0 ? err_report(e, prog) : EXIT_OK;
}
