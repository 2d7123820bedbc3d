/* SPDX-License-Identifier: Apache-2.0 */
/* confparse: the keys there are, and one file's bytes. Pure. */
#include <errno.h>
#include <ini.h>
#include <stdlib.h>
#include <string.h>

#include "loaders/lib/host/names/rules.h"
#include "schema/base/array.h"
#include "schema/base/cleanup.h"
#include "schema/base/cli/quantity.h"
#include "schema/families/families.h"
#include "schema/base/strbuf.h"
#include "supervisor/config/conf_parts.h"

#define FREQ_MAX 4999
#define LINE_MOST                                                                      \
	198 /* INI_MAX_LINE of libinih as Debian builds it, less a newline and the end \
	     */

static int check_store(struct conf *c, const char *text)
{
	(void)c;
	return *text == '/' || !*text ? 0 : -EINVAL;
}

static int check_budget(struct conf *c, const char *text)
{
	return *text ? quantity_bytes(text, &c->budget_bytes) : 0;
}

static int check_reserve(struct conf *c, const char *text)
{
	return *text ? quantity_bytes(text, &c->reserve_bytes) : 0;
}

static int check_age(struct conf *c, const char *text)
{
	return quantity_ns(text, &c->age_ns);
}

static int check_segment_age(struct conf *c, const char *text)
{
	int64_t ns;

	if (quantity_ns(text, &ns) || ns < 1000000000)
		return -EINVAL;
	c->segment_age_ns = ns;
	return 0;
}

static int check_yes(const char *text, bool *yes)
{
	*yes = !strcmp(text, "yes");
	return *yes || !strcmp(text, "no") ? 0 : -EINVAL;
}

static int check_seal(struct conf *c, const char *text)
{
	return check_yes(text, &c->seal);
}

static int check_fine_age(struct conf *c, const char *text)
{
	c->fine_age_ns = 0;
	return strcmp(text, "0") ? quantity_ns(text, &c->fine_age_ns) : 0;
}

static int check_families(struct conf *c, const char *text)
{
	const struct probe_family *out[FAMILIES_MAX];
	size_t n;

	(void)c;
	return families_of(text, out, &n, NULL);
}

static int check_requests(struct conf *c, const char *text)
{
	c->requests = !strcmp(text, "on");
	return c->requests || !strcmp(text, "off") ? 0 : -EINVAL;
}

static int check_gpu(struct conf *c, const char *text)
{
	c->gpu = !strcmp(text, "on");
	c->gpu_auto = !strcmp(text, "auto");
	return c->gpu || c->gpu_auto || !strcmp(text, "off") ? 0 : -EINVAL;
}

/* Words of sonde-scrape's --profiles. */
static int check_scrape(struct conf *c, const char *text)
{
	static const char *const known[] = {"cpu", "heap", "goroutine", "block", "mutex"};
	bool found = true;

	c->scrape = strcmp(text, "off") != 0;
	if (!c->scrape || !strcmp(text, "on"))
		return 0;
	for (size_t len; found && text; text = text[len] ? text + len + 1 : NULL) {
		len = strcspn(text, ",");
		found = false;
		for (size_t i = 0; i < ARRAY_SIZE(known); i++)
			found |= strlen(known[i]) == len && !memcmp(known[i], text, len);
	}
	return found ? 0 : -EINVAL;
}

static int check_log_lines(struct conf *c, const char *text)
{
	c->log_lines = !strcmp(text, "on");
	return c->log_lines || !strcmp(text, "off") ? 0 : -EINVAL;
}

static int check_freq(struct conf *c, const char *text)
{
	char *end;
	long v = strtol(text, &end, 10);

	if (*end || *text < '0' || *text > '9' || v < 1 || v > FREQ_MAX)
		return -EINVAL;
	c->freq = (uint32_t)v;
	return 0;
}

static int check_args(struct conf *c, const char *text)
{
	(void)c;
	return !strcmp(text, "full") || !strcmp(text, "masked") || !strcmp(text, "none") ? 0 :
											   -EINVAL;
}

static int check_cpu(struct conf *c, const char *text)
{
	char *end;
	double v = strtod(text, &end);

	if (*end || end == text || !(v >= 0 && v <= 100000))
		return -EINVAL;
	c->cpu = v;
	return 0;
}

static int check_memory(struct conf *c, const char *text)
{
	c->memory_bytes = 0;
	return strcmp(text, "0") ? quantity_bytes(text, &c->memory_bytes) : 0;
}

static int check_rules(struct conf *c, const char *text)
{
	(void)c;
	return rules_check(text);
}

#define RULES_LIKE \
	"a list of container:, image:, command:, user: (of this host) or unit: with a pattern each"

/* clang-format off */
const struct conf_row conf_rows[CONF_KEYS] = {
	[CONF_STORE] = {"store", "store", "SONDE_STORE", "", "a path that begins with /", "the store's folder", check_store},
	[CONF_BUDGET] = {"store", "budget", "SONDE_BUDGET", "", "2G or 500M",
			 "what all of the store may take (default: 2G, or 5 % of the disk if that is less)", check_budget},
	[CONF_RESERVE] = {"store", "reserve", "SONDE_RESERVE", "", "512M",
			  "what must be free on its disk (default: 512M, or 5 % of the disk if that is less)", check_reserve},
	[CONF_AGE] = {"store", "age", "SONDE_AGE", "14d", "14d or 12h", "nothing older than this stays, but the newest two days", check_age},
	[CONF_SEGMENT_AGE] = {"store", "segment-age", "SONDE_SEGMENT_AGE", "1h", "1h or 90s", "a file of the store is left after this",
			      check_segment_age},
	[CONF_SEAL] = {"store", "seal", "SONDE_SEAL", "yes", "yes or no", "finished files are archived, a fifth of the size", check_seal},
	[CONF_FINE_AGE] = {"store", "fine-age", "SONDE_FINE_AGE", "1d", "1d or 12h, 0 for always",
			   "of what was used and waited for there are ten seconds for so long, then minutes", check_fine_age},
	[CONF_FAMILIES] = {"record", "families", "SONDE_FAMILIES", NULL, "cpu,offcpu,host", "what is recorded, with commas", check_families},
	[CONF_REQUESTS] = {"record", "requests", "SONDE_REQUESTS", "off", "on or off", "on: requests, too, as if families named l7", check_requests},
	[CONF_GPU] = {"record", "gpu", "SONDE_GPU", "auto", "auto, on or off",
		      "on: GPUs, too, as if families named gpu; auto: where there is a driver for them and families is not set", check_gpu},
	[CONF_SCRAPE] = {"record", "scrape", "SONDE_SCRAPE", "off", "on, off, or of cpu, heap, goroutine, block, mutex, with commas",
			 "on: what Go programs offer at /debug/pprof, too, as if families named scrape; all but cpu, or what is listed", check_scrape},
	[CONF_LOG_LINES] = {"record", "log-lines", "SONDE_LOG_LINES", "off", "on or off",
			    "on: a container's last 20 lines of its log are kept where it ended badly, secrets masked", check_log_lines},
	[CONF_FREQ] = {"record", "freq", "SONDE_FREQ", "19", "a number from 1 to 4999", "samples a second on each CPU", check_freq},
	[CONF_ARGS] = {"record", "args", "SONDE_ARGS", "masked", "full, masked or none", "command lines of processes", check_args},
	[CONF_INCLUDE] = {"targets", "include", "SONDE_INCLUDE", "", RULES_LIKE,
			  "only these processes are told of or gone into (default: all): container:web-* user:postgres", check_rules},
	[CONF_EXCLUDE] = {"targets", "exclude", "SONDE_EXCLUDE", "", RULES_LIKE,
			  "and not these, they are [excluded] all together: command:vault unit:secret.service", check_rules},
	[CONF_CPU] = {"limits", "cpu", "SONDE_CPU", "3", "a number of percent, 0 for no limit",
		      "what all of sonde may take, in percent of one core; over it for a minute, sampling is slowed", check_cpu},
	[CONF_MEMORY] = {"limits", "memory", "SONDE_MEMORY", "256M", "256M, 0 for no limit",
			 "what all of sonde may take of memory; over it for a minute, families are ended", check_memory},
};
/* clang-format on */

const char *conf_fallback(enum conf_key key)
{
	return key == CONF_FAMILIES ? families_always() : conf_rows[key].fallback;
}

static int refuse_value(enum conf_key key, const char *text, const char *origin, struct err *e)
{
	const struct conf_row *r = &conf_rows[key];
	const struct probe_family *out[FAMILIES_MAX];
	struct err why = {0};
	size_t n;

	if (key == CONF_FAMILIES && families_of(text, out, &n, &why))
		err_set(e, -EINVAL, EXIT_USAGE, "%s: %s", origin, why.what);
	else
		err_set(e, -EINVAL, EXIT_USAGE, "%s: %s '%.80s' is not %s", origin, r->name, text,
			r->like);
	err_fix(e, "sonde config show    lists %s%s%s, and all others", r->name,
		*conf_fallback(key) ? ", by default " : "", conf_fallback(key));
	return -EINVAL;
}

int conf_set(struct conf *c, enum conf_key key, const char *text, const char *origin, struct err *e)
{
	if (strlen(text) >= CONF_TEXT_MAX || conf_rows[key].check(c, text))
		return refuse_value(key, text, origin, e);
	snprintf(c->value[key].text, CONF_TEXT_MAX, "%s", text);
	snprintf(c->value[key].origin, CONF_ORIGIN_MAX, "%s", origin);
	return 0;
}

/* --- one file --- */

struct file {
	struct conf *c;
	const char *name, *text;
	size_t len, at;
	int set[CONF_KEYS]; /* the line that said something of a key, 0: none has */
	bool goes_on; /* the line begins with a blank: libinih hands its text out as one more value
			 of the key before */
	int line; /* libinih does not tell it to its reader: lines are counted as they are handed
		     out */
	struct err *e;
	int rc;
};

/* How many letters differ, roughly: for a suggestion. */
static size_t distance(const char *a, const char *b)
{
	size_t row[64], la = strlen(a), lb = strlen(b);

	if (la >= 64 || lb >= 64)
		return 64;
	for (size_t j = 0; j <= lb; j++)
		row[j] = j;
	for (size_t i = 1; i <= la; i++) {
		size_t before = row[0];

		row[0] = i;
		for (size_t j = 1; j <= lb; j++) {
			size_t here = row[j], cost = before + (a[i - 1] != b[j - 1]);

			cost = row[j] + 1 < cost ? row[j] + 1 : cost;
			row[j] = row[j - 1] + 1 < cost ? row[j - 1] + 1 : cost;
			before = here;
		}
	}
	return row[lb];
}

static void suggest(const char *section, const char *name, struct err *e)
{
	size_t best = SIZE_MAX;
	int found = -1;

	for (int i = 0; i < CONF_KEYS; i++) {
		size_t d = distance(name, conf_rows[i].name), len = strlen(conf_rows[i].name);

		if (d > len / 3) /* else each short word would be like any other */
			continue;
		if (d < best || (d == 0 && strcmp(section, conf_rows[i].section))) {
			best = d;
			found = i;
		}
	}
	if (found >= 0)
		err_fix(e, "did you mean:  [%s]  %s = ...", conf_rows[found].section,
			conf_rows[found].name);
	else
		err_fix(e, "sonde config show    lists all keys");
}

static void say_form(struct err *e)
{
	err_fix(e,
		"lines are [section], key = value of at most %d bytes, and # comments; a list of rules goes on in the next line, "
		"after a blank",
		LINE_MOST);
}

static bool is_blank(char c)
{
	return c == ' ' || c == '\t';
}

/* libinih leaves it where a value goes on. */
static size_t until_comment(const char *value)
{
	size_t n = 0;

	while (value[n] && !(value[n] == ';' && (!n || is_blank(value[n - 1]))))
		n++;
	while (n && is_blank(value[n - 1]))
		n--;
	return n;
}

/* A list of rules may go on in further lines; else a key is said once in a file, or the first would
 * be lost in silence. */
static int take_value(struct file *f, enum conf_key key, const char *value, const char *origin)
{
	struct strbuf all cleanup_strbuf = STRBUF_INIT;
	bool list = key == CONF_INCLUDE || key == CONF_EXCLUDE;

	if (!f->set[key]) {
		f->set[key] = f->line;
		return conf_set(f->c, key, value, origin, f->e);
	}
	if (list && f->goes_on) {
		strbuf_addf(&all, "%s %.*s", f->c->value[key].text, (int)until_comment(value),
			    value);
		return conf_set(f->c, key, strbuf_str(&all), origin, f->e);
	}
	err_set(f->e, -EINVAL, EXIT_USAGE, "%s: %s is set once more, after line %d%s", origin,
		conf_rows[key].name, f->set[key],
		f->goes_on ? ": a line that begins with a blank goes on with the one before" : "");
	if (list)
		say_form(f->e);
	else
		err_fix(f->e, "leave one of the lines");
	return -EINVAL;
}

static int on_value(void *user, const char *section, const char *name, const char *value)
{
	struct file *f = user;
	char origin[CONF_ORIGIN_MAX];

	if (f->rc)
		return 1;
	snprintf(origin, sizeof(origin), "%.140s:%d", f->name, f->line);
	for (int i = 0; i < CONF_KEYS; i++)
		if (!strcmp(section, conf_rows[i].section) && !strcmp(name, conf_rows[i].name)) {
			f->rc = take_value(f, (enum conf_key)i, value, origin);
			return 1;
		}
	f->rc = err_set(f->e, -EINVAL, EXIT_USAGE, "%s: unknown key '%.60s' in section [%.40s]",
			origin, name, section);
	suggest(section, name, f->e);
	return 1;
}

static char *next_line(char *out, int size, void *stream)
{
	struct file *f = stream;
	const char *nl = f->at < f->len ? memchr(f->text + f->at, '\n', f->len - f->at) : NULL;
	size_t n = nl ? (size_t)(nl - f->text) + 1 - f->at : f->len - f->at;

	if (f->at >= f->len)
		return NULL;
	f->line++;
	f->goes_on = is_blank(f->text[f->at]);
	if (n >= (size_t)size || memchr(f->text + f->at, 0, n)) {
		if (!f->rc) {
			f->rc = err_set(f->e, -EINVAL, EXIT_USAGE,
					"%s:%d: the line is too long, or no text", f->name,
					f->line);
			say_form(f->e);
		}
		n = 0;
	}
	memcpy(out, f->text + f->at, n);
	out[n] = '\0';
	f->at += nl ? (size_t)(nl - f->text) + 1 - f->at : f->len - f->at;
	return out;
}

int conf_parse(struct conf *c, const char *name, const char *text, size_t len, struct err *e)
{
	struct file f = {.c = c, .name = name, .text = text, .len = len, .e = e};
	int line = ini_parse_stream(next_line, &f, on_value, &f);

	if (f.rc)
		return f.rc;
	if (line > 0) {
		err_set(e, -EINVAL, EXIT_USAGE, "%s:%d: neither [section] nor key = value", name,
			line);
		say_form(e);
		return -EINVAL;
	}
	return line < 0 ? -ENOMEM : 0;
}
