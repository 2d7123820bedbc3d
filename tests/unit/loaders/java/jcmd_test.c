/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/unit/test.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "loaders/java/jcmd.h"

TEST(a_request_has_three_arguments_of_at_most_1024_bytes)
{
	char out[JCMD_REQUEST_MAX], line[JCMD_LINE_MAX + 2];

	assert_int_equal(jcmd_load_request("a.jar=on", out), 33);
	assert_memory_equal(out, "1\0load\0instrument\0false\0a.jar=on\0", 33);
	assert_int_equal(jcmd_request("JFR.check", out), 19);
	assert_memory_equal(out, "1\0jcmd\0JFR.check\0\0\0", 19);
	memset(line, 'x', sizeof(line));
	line[JCMD_LINE_MAX + 1] = '\0';
	assert_int_equal(jcmd_request(line, out), 0);
	line[JCMD_LINE_MAX] = '\0';
	assert_int_equal(jcmd_request(line, out), JCMD_LINE_MAX + 10);
}

TEST(an_answer_counts_if_its_status_is_0)
{
	assert_string_equal(jcmd_text("0\nhello"), "hello");
	assert_null(jcmd_text("-1\nUnknown"));
	assert_null(jcmd_text(""));
	assert_null(jcmd_text("01\n"));
}

TEST(the_version_is_that_of_the_second_line)
{
	assert_int_equal(
		jcmd_major(
			"OpenJDK 64-Bit Server VM version 17.0.15+6-Debian-1deb12u1\nJDK 17.0.15\n"),
		17);
	assert_int_equal(jcmd_major("OpenJDK 64-Bit Server VM version 25.504-b08\nJDK 8.0_504\n"),
			 8);
	assert_int_equal(jcmd_major("OpenJDK 64-Bit Server VM"), 0);
	assert_int_equal(jcmd_major(""), 0);
	assert_int_equal(jcmd_major("x\nJDK 99999999999999999999"), 0);
}

TEST(recordings_are_ours_by_their_whole_name)
{
	uint32_t id;

	assert_int_equal(jcmd_recordings("Recording 3: name=sonde maxsize=32.0MB (running)\n", &id),
			 1);
	assert_int_equal(id, 3);
	assert_int_equal(
		jcmd_recordings("Recording: recording=7 name=\"sonde\" maxsize=32.0MB (running)\n",
				&id),
		1);
	assert_int_equal(id, 7);
	assert_int_equal(
		jcmd_recordings(
			"Recording 1: name=sondera (running)\nRecording 2: name=mine (running)\n",
			&id),
		0);
	assert_int_equal(
		jcmd_recordings(
			"Recording 1: name=mine (running)\n\nRecording 2: name=sonde (running)\n",
			&id),
		1);
	assert_int_equal(id, 2);
	assert_int_equal(jcmd_recordings("Recording 4294967296: name=sonde (running)\n", &id), 0);
	assert_int_equal(
		jcmd_recordings(
			"No available recordings.\n\nUse jcmd 1 JFR.start to start a recording.\n",
			&id),
		0);
	assert_int_equal(
		jcmd_recordings("java.lang.IllegalArgumentException: Unknown diagnostic command\n",
				&id),
		-1);
}

TEST(a_start_and_a_stop_are_told_by_the_text)
{
	assert_int_equal(jcmd_started("Started recording 12.\n\nUse jcmd"), 12);
	assert_int_equal(
		jcmd_started("The .jfc option/setting 'x' doesn't exist.\n\nStarted recording 2."),
		2);
	assert_int_equal(jcmd_started("Could not start recording, not able to write to file"), 0);
	assert_true(jcmd_stopped("Stopped recording \"sonde\".\n"));
	assert_false(jcmd_stopped("Could not stop recording \"sonde\".\n"));
}

TEST(each_version_gets_the_events_that_it_has)
{
	struct jcmd_wish w = {.major = 17};
	char line[1200], file[4096];

	assert_int_equal(jcmd_start_line(&w, line, sizeof(line)), 0);
	assert_true(strlen(line) <= JCMD_LINE_MAX);
	assert_non_null(strstr(
		line,
		"settings=none +jdk.ObjectAllocationSample#enabled=true +jdk.ObjectAllocationSample#throttle=2500/s"));
	assert_null(strstr(line, "TLAB"));
	assert_non_null(strstr(line, "+jdk.JavaExceptionThrow#stackTrace=true"));
	assert_null(strstr(line, "JavaExceptionThrow#throttle"));
	w = (struct jcmd_wish){.major = 25};
	assert_int_equal(jcmd_start_line(&w, line, sizeof(line)), 0);
	assert_non_null(strstr(line, "+jdk.JavaExceptionThrow#throttle=off"));
	w.no_exceptions = true;
	assert_int_equal(jcmd_start_line(&w, line, sizeof(line)), 0);
	assert_null(strstr(line, "Exception"));
	w = (struct jcmd_wish){.major = 8, .settings = "/tmp/.sonde-1.jfc"};
	assert_int_equal(jcmd_start_line(&w, line, sizeof(line)), 0);
	assert_non_null(strstr(line, "settings=/tmp/.sonde-1.jfc"));
	assert_null(strstr(line, "+jdk"));
	assert_true(jcmd_settings(&w, file, sizeof(file)) > 0);
	assert_non_null(strstr(
		file,
		"<event name=\"jdk.ObjectAllocationInNewTLAB\"><setting name=\"enabled\">true</setting>"));
	assert_null(strstr(file, "ObjectAllocationSample"));
	assert_int_equal(jcmd_start_line(&w, line, 20), -E2BIG);
	assert_int_equal(jcmd_settings(&w, file, 100), 0);
}

TEST(what_a_stranger_says_is_shown_as_one_printable_line)
{
	char out[12];

	jcmd_line("\n  a\x1b[2Jb\xffjk\nlm", out, sizeof(out));
	assert_string_equal(out, "a?[2Jb?jk");
	jcmd_line("0123456789abcdef", out, sizeof(out));
	assert_string_equal(out, "0123456789a");
}
