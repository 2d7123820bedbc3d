/* SPDX-License-Identifier: Apache-2.0 */
/* engines: where container engines keep their files, by their command lines and folders. */
#include <string.h>

#include "loaders/lib/host/proc/engines.h"
#include "tests/unit/test.h"

#define ARGS(s) s, sizeof(s) /* with the last NUL, as the kernel gives it */
#define ID      "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"

static char out[512];

TEST(dockers_data_root_is_that_of_its_command_line)
{
	assert_true(engines_data_root(ARGS("dockerd\0--data-root\0/srv/docker"), out, sizeof(out)));
	assert_string_equal(out, "/srv/docker");
	assert_true(
		engines_data_root(ARGS("dockerd\0-g\0/a\0--data-root=/b\0-D"), out, sizeof(out)));
	assert_string_equal(out, "/b"); /* the last one holds */
	assert_true(engines_config_file(ARGS("dockerd\0--config-file=/etc/other.json"), out,
					sizeof(out)));
	assert_string_equal(out, "/etc/other.json");
}

TEST(what_names_no_absolute_path_is_not_taken)
{
	char small[4];

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

TEST(podmans_storage_is_where_the_bundle_of_a_monitor_lies)
{
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

TEST(containerds_bundles_are_where_a_shim_works)
{
	assert_true(engines_tasks("/srv/state/io.containerd.runtime.v2.task/own/" ID, out,
				  sizeof(out)));
	assert_string_equal(out, "/srv/state/io.containerd.runtime.v2.task/own");
	assert_false(engines_tasks("/", out, sizeof(out)));
	assert_false(engines_tasks("/srv/" ID, out, sizeof(out)));
	assert_false(engines_tasks("(unreachable)/io.containerd.runtime.v2.task/own/" ID, out,
				   sizeof(out)));
}
