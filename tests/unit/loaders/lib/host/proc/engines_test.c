/* SPDX-License-Identifier: Apache-2.0 */
/* engines: where container engines keep their files, by their command lines and folders. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "loaders/lib/host/proc/engines.h"

#define ARGS(s) s, sizeof(s) /* with the last NUL, as the kernel gives it */
#define ID      "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"

static char out[512];

static void dockers_data_root_is_that_of_its_command_line(void **state)
{
	(void)state;
	assert_true(engines_data_root(ARGS("dockerd\0--data-root\0/srv/docker"), out, sizeof(out)));
	assert_string_equal(out, "/srv/docker");
	assert_true(
		engines_data_root(ARGS("dockerd\0-g\0/a\0--data-root=/b\0-D"), out, sizeof(out)));
	assert_string_equal(out, "/b"); /* the last one holds */
	assert_true(engines_config_file(ARGS("dockerd\0--config-file=/etc/other.json"), out,
					sizeof(out)));
	assert_string_equal(out, "/etc/other.json");
}

static void what_names_no_absolute_path_is_not_taken(void **state)
{
	char small[4];

	(void)state;
	assert_false(engines_data_root(ARGS("dockerd"), out, sizeof(out)));
	assert_false(engines_data_root(ARGS("dockerd\0--data-root"), out, sizeof(out)));
	assert_false(engines_data_root(ARGS("dockerd\0--data-root=relative"), out, sizeof(out)));
	assert_false(engines_data_root(ARGS("dockerd\0--data-root="), out, sizeof(out)));
	assert_false(engines_data_root(ARGS("dockerd\0--data-rootless=/x"), out, sizeof(out)));
	assert_false(
		engines_data_root(ARGS("dockerd\0--data-root=/srv/docker"), small, sizeof(small)));
	assert_false(engines_data_root("", 0, out, sizeof(out)));
	assert_false(engines_data_root("--data-root", 11, out, sizeof(out))); /* cut off */
}

static void podmans_storage_is_where_the_bundle_of_a_monitor_lies(void **state)
{
	(void)state;
	assert_true(
		engines_storage(ARGS("/usr/bin/conmon\0-c\0" ID
				     "\0-b\0/data/c/overlay-containers/" ID "/userdata\0-n\0web"),
				out, sizeof(out)));
	assert_string_equal(out, "/data/c/overlay-containers");
	assert_false(engines_storage(ARGS("conmon\0-b\0/data/c/elsewhere/" ID "/userdata"), out,
				     sizeof(out)));
	assert_false(engines_storage(ARGS("conmon\0-b\0/userdata"), out, sizeof(out)));
	assert_false(engines_storage(ARGS("conmon\0-c\0" ID), out, sizeof(out)));
}

static void containerds_bundles_are_where_a_shim_works(void **state)
{
	(void)state;
	assert_true(engines_tasks("/srv/state/io.containerd.runtime.v2.task/own/" ID, out,
				  sizeof(out)));
	assert_string_equal(out, "/srv/state/io.containerd.runtime.v2.task/own");
	assert_false(engines_tasks("/", out, sizeof(out)));
	assert_false(engines_tasks("/srv/" ID, out, sizeof(out)));
	assert_false(engines_tasks("(unreachable)/io.containerd.runtime.v2.task/own/" ID, out,
				   sizeof(out)));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(dockers_data_root_is_that_of_its_command_line),
		cmocka_unit_test(what_names_no_absolute_path_is_not_taken),
		cmocka_unit_test(podmans_storage_is_where_the_bundle_of_a_monitor_lies),
		cmocka_unit_test(containerds_bundles_are_where_a_shim_works),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
