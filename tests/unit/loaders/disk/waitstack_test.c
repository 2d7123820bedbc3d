/* SPDX-License-Identifier: Apache-2.0 */
/* waitstack: what of a kernel stack is stored. */
#include "loaders/disk/waitstack.h"

#include <stdio.h>
#include <string.h>

#include "tests/unit/test.h"

TEST(the_schedulers_and_the_entrys_functions_are_left_out)
{
	char names[][WAITSTACK_NAME] = {"__schedule",
					"schedule",
					"io_schedule",
					"folio_wait_bit_common",
					"do_fsync",
					"do_syscall_64",
					"entry_SYSCALL_64_after_hwframe"};
	char text[WAITSTACK_TEXT];

	waitstack_join(names, 7, text);
	assert_string_equal(text, "folio_wait_bit_common do_fsync");
	waitstack_join(names, 3, text);
	assert_string_equal(text, "");
	waitstack_join(names + 5, 2, text);
	assert_string_equal(text, "");
	waitstack_join(names, 0, text);
	assert_string_equal(text, "");
}

TEST(what_there_is_no_room_for_is_cut_at_a_function)
{
	char names[40][WAITSTACK_NAME], text[WAITSTACK_TEXT];

	for (int i = 0; i < 40; i++)
		snprintf(names[i], sizeof(names[i]), "f%062d", i);
	waitstack_join(names, 40, text);
	assert_int_equal(strlen(text) % WAITSTACK_NAME, WAITSTACK_NAME - 1);
	assert_true(strlen(text) < WAITSTACK_TEXT);
	assert_true(strlen(text) > WAITSTACK_TEXT - 2 * WAITSTACK_NAME);
}
