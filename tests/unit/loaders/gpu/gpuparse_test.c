/* SPDX-License-Identifier: Apache-2.0 */
/* gpuparse: the output of sonde-nvml, in pieces and damaged. */
#include <string.h>

#include "loaders/gpu/gpuparse.h"
#include "schema/facts/gpu.h"
#include "tests/unit/test.h"

static const char BLOCK[] =
	"device GPU-1\ngpu 0:1\nname A100 with\xff blanks\nbusy_us 5\nmem_used 18446744073709551616\npower_mw -3\n"
	"uuid 9\nprocess 7 1 4096 10 - 30 40\nprocess 8 2 -\nprocess x 1 1 1 1 1 1\nprocess 9 1 - - - - -\nwhatever\ndone\nend\n";
static struct gpuparse_device d;

TEST(a_block_is_whole_or_not_there)
{
	size_t block, whole = (size_t)(strstr(BLOCK, "end\n") - BLOCK);

	for (size_t i = 0; i < whole; i++)
		assert_int_equal(gpuparse_next(BLOCK, i, &block), GPUPARSE_MORE);
	assert_int_equal(gpuparse_next(BLOCK, sizeof(BLOCK) - 1, &block), GPUPARSE_DEVICE);
	assert_int_equal(block, whole);
	assert_int_equal(gpuparse_next(BLOCK + block, sizeof(BLOCK) - 1 - block, &block),
			 GPUPARSE_END);
}

TEST(a_device_has_what_was_told_and_nothing_of_lines_that_cannot_be)
{
	assert_true(gpuparse_device(BLOCK, sizeof(BLOCK) - 1, &d));
	assert_string_equal(d.uuid, "GPU-1");
	assert_string_equal(d.number, "0:1");
	assert_string_equal(d.name, "A100 with? blanks");
	assert_int_equal(d.row.set, 1ull << GPU_BUSY);
	assert_int_equal(d.n, 2);
	assert_int_equal(d.processes[0].row.v[GPU_PROCESS_MEM].number, 4096);
	assert_false(fact_has(&d.processes[0].row, GPU_PROCESS_MEM_BUSY));
	assert_int_equal(d.processes[0].row.v[GPU_PROCESS_DEC].number, 40);
	assert_int_equal(d.processes[1].pid, 9);
	assert_int_equal(d.processes[1].row.set, 0);
	assert_false(gpuparse_device("gpu 0\ndone\n", 11, &d));
}

TEST(the_greeting_and_why_there_is_none_are_read)
{
	static const char hello[] = "driver 535\nlibrary 12\ndevices 2\nmissing a b\nready\n",
			  error[] = "error no driver\nfix load it\n";
	struct gpuparse_hello h;
	struct err e = {0};
	size_t block;

	assert_int_equal(gpuparse_next(hello, sizeof(hello) - 1, &block), GPUPARSE_READY);
	gpuparse_hello(hello, block, &h);
	assert_string_equal(h.missing, "a b");
	assert_int_equal(h.devices, 2);
	assert_int_equal(gpuparse_next(error, sizeof(error) - 1, &block), GPUPARSE_ERROR);
	assert_int_not_equal(gpuparse_error(error, block, &e), 0);
	assert_string_equal(e.what, "no driver");
	assert_string_equal(e.fix, "load it");
	assert_int_equal(e.exit, EXIT_PREREQUISITE);
}
