/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/unit/test.h"

#include <string.h>

#include "loaders/java/jguard.h"

#define WORDS(s) s, sizeof(s) - 1
#define MAPS     "7f00-7f01 r-xp 00000000 08:01 1 /usr/lib/jvm/java-17/lib/server/libjvm.so\n"

static const char STATUS[] = "Name:\tjava\nState:\tS (sleeping)\nSigCgt:\t2000000181005ccf\n";
static const char LINE[] = "java\0-Xmx64m\0-jar\0app.jar", PERF[] = "xx java.rt.vmArgs -Xmx64m";

static struct jguard_seen seen(void)
{
	return (struct jguard_seen){.status = STATUS,
				    .maps = MAPS,
				    .cmdline = LINE,
				    .cmdline_len = sizeof(LINE),
				    .environment = "",
				    .perf = PERF,
				    .perf_len = sizeof(PERF),
				    .dispatcher = true};
}

static void cmdline_set(struct jguard_seen *s, const char *text, size_t len)
{
	s->cmdline = text;
	s->cmdline_len = len;
}

static void environment_set(struct jguard_seen *s, const char *text, size_t len)
{
	s->environment = text;
	s->environment_len = len;
}

static void refused(const struct jguard_seen *s, const char *why)
{
	const char *said = jguard_refuses(s);

	assert_non_null(said);
	assert_non_null(strstr(said, why));
}

TEST(a_java_program_at_work_may_be_asked)
{
	struct jguard_seen s = seen();

	assert_null(jguard_refuses(&s));
	s.perf = NULL;
	s.perf_len = 0;
	assert_null(jguard_refuses(&s));
}

TEST(other_programs_are_not)
{
	struct jguard_seen s = seen();

	s.maps = "7f00-7f01 r-xp 00000000 08:01 1 /usr/lib/libc.so.6\n";
	refused(&s, "HotSpot");
	s.maps = "7f00-7f01 r-xp 0 08:01 1 /tmp/libjvm.so.bak\n";
	refused(&s, "HotSpot");
	s.maps = MAPS "7f02-7f03 r-xp 0 08:01 1 /opt/openj9/lib/default/libj9vm29.so\n";
	refused(&s, "HotSpot");
	s.maps = NULL;
	refused(&s, "HotSpot");
}

TEST(one_that_would_end_or_print_its_threads_is_not)
{
	struct jguard_seen s = seen();

	s.status = "State:\tS (sleeping)\nSigCgt:\t2000000181005ccb\n";
	refused(&s, "SIGQUIT");
	s.status = "State:\tT (stopped)\nSigCgt:\t2000000181005ccf\n";
	refused(&s, "stopped");
	s = seen();
	s.frozen = true;
	refused(&s, "stopped");
	s = seen();
	s.dispatcher = false;
	refused(&s, "Signal Dispatcher");
	s = seen();
	cmdline_set(&s, WORDS("java\0-XX:+DisableAttachMechanism\0Main"));
	refused(&s, "DisableAttachMechanism");
	s = seen();
	environment_set(&s, WORDS("A=b\0JAVA_TOOL_OPTIONS=-XX:+DisableAttachMechanism\0"));
	refused(&s, "DisableAttachMechanism");
	environment_set(&s, WORDS("NOTE=-XX:+DisableAttachMechanism\0"));
	assert_null(jguard_refuses(&s));
	s = seen();
	s.perf = "java.rt.vmArgs -XX:+DisableAttachMechanism";
	s.perf_len = strlen(s.perf);
	refused(&s, "DisableAttachMechanism");
	cmdline_set(&s, NULL, 0);
	refused(&s, "cannot be read");
}

TEST(options_in_a_file_count_only_by_what_the_machine_says)
{
	struct jguard_seen s = seen();

	cmdline_set(&s, WORDS("java\0@options\0Main"));
	assert_null(jguard_refuses(&s));
	s.perf = NULL;
	s.perf_len = 0;
	refused(&s, "from a file");
	cmdline_set(&s, WORDS("java\0-XX:VMOptionsFile=x\0Main"));
	refused(&s, "from a file");
	s = seen();
	s.perf_len = 0;
	environment_set(&s, WORDS("JDK_JAVA_OPTIONS=@more\0"));
	refused(&s, "from a file");
	environment_set(&s, WORDS("MAIL=me@home\0"));
	assert_null(jguard_refuses(&s));
}
