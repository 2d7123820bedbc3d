/* SPDX-License-Identifier: Apache-2.0 */
/* conf: which source wins, and the messages about wrong values. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "schema/base/array.h"
#include "supervisor/config/conf.h"
#include "tests/unit/test.h"

struct folder {
	char dir[64];
};

static int setup(void **state)
{
	struct folder *p = calloc(1, sizeof(*p));
	char sub[80];

	snprintf(p->dir, sizeof(p->dir), "/tmp/sonde-conf-XXXXXX");
	if (!mkdtemp(p->dir))
		return -1;
	setenv("SONDE_CONFIG", "/nonexistent", 1);
	unsetenv("STATE_DIRECTORY");
	snprintf(sub, sizeof(sub), "%s/conf.d", p->dir);
	mkdir(sub, 0755);
	for (int i = 0; conf_setting((enum conf_key)i); i++) {
		char env[40] = "SONDE_";

		for (const char *c = conf_setting((enum conf_key)i)->name; *c; c++)
			strncat(env, (char[2]){*c == '-' ? '_' : (char)(*c - 32)}, 1);
		unsetenv(env);
	}
	conf_host_root = p->dir;
	*state = p;
	return 0;
}

static int teardown(void **state)
{
	struct folder *p = *state;
	char cmd[120];

	snprintf(cmd, sizeof(cmd), "rm -r %s", p->dir);
	if (system(cmd))
		return -1;
	free(p);
	return 0;
}

/* The value of a family's setting. */
static const char *value_of(const struct conf *c, const char *name)
{
	for (int i = 0; conf_setting((enum conf_key)i); i++)
		if (!strcmp(conf_setting((enum conf_key)i)->name, name))
			return c->value[i].text;
	return NULL;
}

static void put(const struct folder *p, const char *name, const char *text)
{
	char path[128];
	FILE *f;

	snprintf(path, sizeof(path), "%s/%s", p->dir, name);
	f = fopen(path, "w");
	fputs(text, f);
	fclose(f);
}

TEST_WITH(without_any_file_the_defaults_hold, setup, teardown)
{
	struct conf c;

	assert_int_equal(conf_load(NULL, NULL, &c, NULL), 0);
	assert_int_equal(c.freq, 19);
	assert_int_equal(c.age_ns, 14ll * 86400 * 1000000000);
	assert_int_equal(c.budget_bytes, 0);
	assert_string_equal(c.value[CONF_FAMILIES].text, "cpu,host");
	assert_string_equal(c.value[CONF_FREQ].origin, "default");
}

TEST_WITH(the_strongest_holds_and_its_origin_is_known, setup, teardown)
{
	struct folder *p = *state;
	const char *flags[CONF_KEYS] = {[CONF_FREQ] = "49"};
	char origin[128];
	struct conf c;

	put(p, "sonde.conf",
	    "# all\n[store]\nbudget = 1G ; small\nage = 2d\n[record]\nfreq = 99\nfamilies = cpu\n");
	put(p, "conf.d/10.conf", "[store]\nage = 3d\n");
	put(p, "conf.d/20.conf", "[store]\nage = 4d\n");
	put(p, "conf.d/30.bak", "[store]\nage = 5d\n");
	setenv("SONDE_FREQ", "29", 1);
	setenv("SONDE_FAMILIES", "cpu,offcpu", 1);
	assert_int_equal(conf_load(p->dir, flags, &c, NULL), 0);
	assert_int_equal(c.freq, 49);
	assert_string_equal(c.value[CONF_FREQ].origin, "--freq");
	assert_string_equal(c.value[CONF_FAMILIES].origin, "SONDE_FAMILIES");
	assert_int_equal(c.budget_bytes, 1ull << 30);
	assert_int_equal(c.age_ns, 4ll * 86400 * 1000000000);
	snprintf(origin, sizeof(origin), "%s/conf.d/20.conf:2", p->dir);
	assert_string_equal(c.value[CONF_AGE].origin, origin);
	snprintf(origin, sizeof(origin), "%s/sonde.conf:3", p->dir);
	assert_string_equal(c.value[CONF_BUDGET].origin, origin);
}

TEST_WITH(requests_are_a_word_for_a_family, setup, teardown)
{
	struct folder *p = *state;
	struct conf c;

	put(p, "sonde.conf", "[record]\nrequests = on\n");
	assert_int_equal(conf_load(p->dir, NULL, &c, NULL), 0);
	assert_string_equal(c.value[CONF_FAMILIES].text, "cpu,host,l7");
	assert_non_null(strstr(c.value[CONF_FAMILIES].origin, "default, requests: "));
	put(p, "conf.d/1.conf", "[record]\nfamilies = l7,cpu\n");
	assert_int_equal(conf_load(p->dir, NULL, &c, NULL), 0);
	assert_string_equal(c.value[CONF_FAMILIES].text, "l7,cpu");
	put(p, "conf.d/1.conf",
	    "[record]\nfamilies = requests,cpu\nrequests = off\n"); /* off takes nothing away */
	assert_int_equal(conf_load(p->dir, NULL, &c, NULL), 0);
	assert_string_equal(value_of(&c, "requests"), "off");
	assert_string_equal(c.value[CONF_FAMILIES].text, "requests,cpu");
}

static void driver_install(const struct folder *p)
{
	char cmd[160];

	snprintf(cmd, sizeof(cmd), "d=%s/proc/driver/nvidia && mkdir -p $d && touch $d/version",
		 p->dir);
	assert_int_equal(system(cmd), 0);
}

TEST_WITH(gpus_are_recorded_where_there_are_some_and_nobody_chose, setup, teardown)
{
	struct folder *p = *state;
	const char *flags[CONF_KEYS] = {[CONF_FAMILIES] = "cpu"};
	struct conf c;

	assert_int_equal(conf_load(p->dir, NULL, &c, NULL), 0);
	assert_string_equal(c.value[CONF_FAMILIES].text, "cpu,host");
	driver_install(p);
	assert_int_equal(conf_load(p->dir, NULL, &c, NULL), 0);
	assert_string_equal(c.value[CONF_FAMILIES].text, "cpu,host,gpu");
	assert_int_equal(conf_load(p->dir, flags, &c, NULL), 0);
	assert_string_equal(c.value[CONF_FAMILIES].text, "cpu");
	put(p, "sonde.conf", "[record]\ngpu = off\n");
	assert_int_equal(conf_load(p->dir, NULL, &c, NULL), 0);
	assert_string_equal(c.value[CONF_FAMILIES].text, "cpu,host");
	put(p, "sonde.conf", "[record]\ngpu = on\nrequests = on\n");
	assert_int_equal(conf_load(p->dir, flags, &c, NULL), 0);
	assert_string_equal(c.value[CONF_FAMILIES].text, "cpu,gpu,l7");
}

TEST_WITH(what_programs_offer_is_asked_for_by_a_word_or_a_list, setup, teardown)
{
	struct folder *p = *state;
	struct conf c;

	assert_int_equal(conf_load(p->dir, NULL, &c, NULL), 0);
	assert_string_equal(value_of(&c, "scrape"), "off");
	put(p, "sonde.conf", "[record]\nscrape = on\n");
	assert_int_equal(conf_load(p->dir, NULL, &c, NULL), 0);
	assert_string_equal(c.value[CONF_FAMILIES].text, "cpu,host,scrape");
	put(p, "sonde.conf", "[record]\nscrape = heap,cpu\n");
	assert_int_equal(conf_load(p->dir, NULL, &c, NULL), 0);
	assert_string_equal(c.value[CONF_FAMILIES].text, "cpu,host,scrape");
	assert_string_equal(value_of(&c, "scrape"), "heap,cpu");
}

TEST_WITH(what_is_wrong_is_said_with_its_line_and_what_was_meant, setup, teardown)
{
	static const struct {
		const char *text, *what, *fix;
	} wrong[] = {
		{"[store]\n\nbudgt = 1G\n", "x:3: unknown key 'budgt' in section [store]",
		 "[store]  budget"},
		{"[record]\nage = 1d\n", "x:2: unknown key 'age' in section [record]",
		 "[store]  age"},
		{"budget = 1G\n", "x:1: unknown key 'budget' in section []", "[store]  budget"},
		{"[store]\nfrobnicate = 1\n", "x:2: unknown key", "sonde config show"},
		{"[store]\nbudget = big\n", "x:2: budget 'big' is not 2G or 500M", "lists budget"},
		{"[record]\nfreq = 5000\n", "x:2: freq '5000' is not a number from 1 to 4999", ""},
		{"[record]\nfamilies = cpu,gpus\n", "x:2: unknown family 'gpus'", "lists families"},
		{"[record]\ngpu = yes\n", "x:2: gpu 'yes' is not auto, on or off",
		 "lists gpu, by default auto"},
		{"[record]\nscrape = cpu,heep\n",
		 "x:2: scrape 'cpu,heep' is not on, off, or of cpu",
		 "lists scrape, by default off"},
		{"[record]\nlog-lines = yes\n", "x:2: log-lines 'yes' is not on or off",
		 "lists log-lines, by default on"},
		{"[record]\nrequests = yes\n", "x:2: requests 'yes' is not on or off",
		 "lists requests, by default off"},
		{"[store]\nage = 14\n", "x:2: age '14' is not 14d or 12h",
		 "age = 14s or age = 14m"},
		{"[limits]\ncpu = -1\n", "x:2: cpu '-1'", ""},
		{"[limits]\ncpu = nan\n", "x:2: cpu 'nan'", ""},
		{"[store\n", "x:1: neither [section] nor key = value", "key = value"},
		{"[store]\nhello\n", "x:2: neither", "key = value"},
		{"[record]\nabc = 1\n", "x:2: unknown key 'abc'",
		 "sonde config show"}, /* no 'cpu' was meant */
		{"[record]\nfrq = 1\n", "x:2: unknown key 'frq'", "[record]  freq"},
		{"[store]\nage = 1d\nbudget = 1G\nage = 2d\n", "x:4: age is already set in line 2",
		 "leave one"},
		{"[targets]\ninclude = user:root\ninclude = user:root\n",
		 "x:3: include is already set", "after a blank"},
		{"[record]\nfamilies = cpu\n  offcpu\n",
		 "x:3: families is already set in line 2: a line that begins", "leave one"},
		{"[targets]\nexclude = command:a\n  comand:b\n",
		 "x:3: exclude 'command:a comand:b' is not", ""},
	};

	for (size_t i = 0; i < ARRAY_SIZE(wrong); i++) {
		struct conf c = {0};
		struct err e = {0};

		assert_true(conf_parse(&c, "x", wrong[i].text, strlen(wrong[i].text), &e) < 0);
		if (!strstr(e.what, wrong[i].what) || !strstr(e.fix, wrong[i].fix))
			fail_msg("'%s' said '%s', fix '%s'", wrong[i].text, e.what, e.fix);
		assert_int_equal(e.exit, EXIT_USAGE);
	}
}

TEST_WITH(a_family_s_settings_are_its_loader_s_options, setup, teardown)
{
	struct folder *p = *state;
	char *argv[2 * FAMILY_SETTINGS_MAX];
	struct conf before, c;

	assert_int_equal(conf_load(p->dir, NULL, &before, NULL), 0);
	for (const struct probe_family *f = FAMILIES; f->name; f++)
		assert_int_equal(conf_family_options(&before, f, argv), 0);
	put(p, "sonde.conf", "[record]\nlog-lines = off\nscrape = heap,cpu\n");
	assert_int_equal(conf_load(p->dir, NULL, &c, NULL), 0);
	assert_int_equal(conf_family_options(&c, family_named("host"), argv), 2);
	assert_string_equal(argv[0], "--log-lines");
	assert_string_equal(argv[1], "off");
	assert_int_equal(conf_family_options(&c, family_named("scrape"), argv), 2);
	assert_string_equal(argv[0], "--profiles");
	assert_string_equal(argv[1], "heap,cpu");
	assert_true(conf_family_differs(&before, &c, family_named("host")));
	assert_false(conf_family_differs(&before, &c, family_named("l7")));
	put(p, "sonde.conf", "[record]\nscrape = on\n"); /* all of them: the loader's default */
	assert_int_equal(conf_load(p->dir, NULL, &c, NULL), 0);
	assert_int_equal(conf_family_options(&c, family_named("scrape"), argv), 0);
}

TEST_WITH(each_setting_of_a_family_can_be_set_and_is_explained, setup, teardown)
{
	struct folder *p = *state;
	const struct family_setting *f;
	struct conf c;
	size_t n = 0;

	for (; (f = family_setting(n, NULL)); n++) {
		enum conf_key key = (enum conf_key)(CONF_FAMILY + n);
		char text[120];

		assert_ptr_equal(conf_setting(key), &f->setting);
		assert_non_null(f->setting.like);
		assert_non_null(f->setting.help);
		snprintf(text, sizeof(text), "[record]\n%s = %s\n", f->setting.name,
			 f->setting.fallback);
		put(p, "sonde.conf", text);
		assert_int_equal(conf_load(p->dir, NULL, &c, NULL), 0);
		assert_string_not_equal(c.value[key].origin, "default");
	}
	assert_in_range(n, 1, FAMILY_SETTINGS_MAX);
	assert_int_equal(conf_count(), CONF_FAMILY + n);
}

TEST_WITH(each_section_is_printed_once, setup, teardown)
{
	char text[8192];
	FILE *f = tmpfile();
	struct conf c;

	assert_int_equal(conf_load(NULL, NULL, &c, NULL), 0);
	conf_print(&c, true, f);
	rewind(f);
	text[fread(text, 1, sizeof(text) - 1, f)] = '\0';
	fclose(f);
	for (const char *name = strchr(text, '['); name; name = strstr(name + 1, "\n[")) {
		const char *line = *name == '[' ? name : name + 1;
		char head[32];

		snprintf(head, sizeof(head), "%.*s\n", (int)strcspn(line, "\n"), line);
		assert_null(strstr(line + 1, head));
	}
}

TEST_WITH(a_wrong_variable_is_named, setup, teardown)
{
	struct err e = {0};
	struct conf c;

	setenv("SONDE_BUDGET", "lots", 1);
	assert_true(conf_load(NULL, NULL, &c, &e) < 0);
	assert_non_null(strstr(e.what, "SONDE_BUDGET: budget 'lots'"));
}

TEST_WITH(bytes_that_are_no_text_are_refused_and_long_lines_too, setup, teardown)
{
	char text[4096];
	struct conf c = {0};
	struct err e = {0};

	assert_true(conf_parse(&c, "x", "[store]\nage\0=1d\n", 16, NULL) < 0);
	memset(text, 'a', sizeof(text));
	assert_true(conf_parse(&c, "x", text, sizeof(text), &e) < 0);
	assert_non_null(strstr(e.what, "x:1: the line is too long"));
	assert_non_null(strstr(e.fix, "continues in the next line"));
	assert_int_equal(conf_parse(&c, "x", "", 0, NULL), 0);
	assert_int_equal(conf_parse(&c, "x", "[store]\nage = 1d", 16, NULL),
			 0); /* no newline at its end */
}

TEST_WITH(a_list_of_rules_goes_on_in_lines_that_begin_with_a_blank, setup, teardown)
{
	static const char text[] =
		"[targets]\nexclude = command:a, ; one\n   command:b\n\n# between\n\tcommand:c ; three\n"
		"include = user:root\n";
	struct conf c = {0};

	assert_int_equal(conf_parse(&c, "x", text, strlen(text), NULL), 0);
	assert_string_equal(c.value[CONF_EXCLUDE].text, "command:a, command:b command:c");
	assert_string_equal(c.value[CONF_INCLUDE].text, "user:root");
}

TEST_WITH(a_folder_that_is_named_has_to_be_there_and_readable, setup, teardown)
{
	struct folder *p = *state;
	struct err e = {0};
	struct conf c;
	char path[80];

	assert_true(conf_load("/nonexistent", NULL, &c, &e) < 0);
	assert_non_null(strstr(e.what, "cannot read /nonexistent"));
	assert_non_null(strstr(e.fix, "--config DIR"));
	assert_int_equal(e.exit, EXIT_USAGE);
	snprintf(path, sizeof(path), "%s/conf.d", p->dir);
	rmdir(path);
	assert_int_equal(conf_load(p->dir, NULL, &c, NULL), 0); /* neither of the two is needed */
	put(p, "conf.d", "no folder");
	assert_true(conf_load(p->dir, NULL, &c, &e) < 0);
	assert_non_null(strstr(e.what, "conf.d"));
}

TEST_WITH(the_folder_that_systemd_made_is_the_default, setup, teardown)
{
	struct folder *p = *state;
	struct conf c;

	setenv("STATE_DIRECTORY", "/var/lib/one:/var/lib/two", 1);
	assert_int_equal(conf_load(p->dir, NULL, &c, NULL), 0);
	assert_string_equal(c.value[CONF_STORE].text, "/var/lib/one");
	assert_string_equal(c.value[CONF_STORE].origin, "STATE_DIRECTORY");
	put(p, "sonde.conf", "[store]\nstore = /data\n");
	assert_int_equal(conf_load(p->dir, NULL, &c, NULL), 0);
	assert_string_equal(c.value[CONF_STORE].text, "/data");
}
