/* SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>
#include <string.h>

#include "loaders/lib/bpf/start/environment.h"
#include "tests/unit/test.h"

#define FIRST "         0          0 4294967295\n"

TEST(test_each_place_is_told_by_its_mark)
{
	assert_int_equal(environment_of("6.1.0-18-amd64", "", FIRST, ""), ENVIRONMENT_PLAIN);
	assert_int_equal(environment_of("4.4.0", "[    0.000000] Starting gVisor...\n", FIRST, ""),
			 ENVIRONMENT_GVISOR);
	assert_int_equal(
		environment_of("6.8.12-1-pve", "", "         0     100000      65536\n", "lxc\n"),
		ENVIRONMENT_GUEST);
	assert_int_equal(environment_of("6.8.12-1-pve", "", FIRST, "lxc\n"), ENVIRONMENT_LXC);
	assert_int_equal(environment_of("5.15.153.1-microsoft-standard-WSL2", "", FIRST, ""),
			 ENVIRONMENT_WSL);
}

TEST(test_what_cannot_be_read_is_a_plain_host)
{
	assert_int_equal(environment_of("", "", "", ""), ENVIRONMENT_PLAIN);
	assert_null(environment_fix(ENVIRONMENT_PLAIN));
	for (int p = ENVIRONMENT_GVISOR; p <= ENVIRONMENT_WSL; p++)
		assert_non_null(environment_fix((enum environment)p));
}
