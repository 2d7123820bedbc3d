/* SPDX-License-Identifier: Apache-2.0 */
/*
 * beam_fuzz: any bytes as the memory of a process that has the tables of an Erlang runtime, in
 * which the frames of a sampled thread are looked for; and as a name that such a runtime writes for
 * perf. The first byte's bits: 1 a return address, 2 the input's place is another one, 4 the stack
 * of an Erlang process came with it.
 *
 * covers: loaders/lib/runtimes/beam/beam.c loaders/lib/runtimes/beam/beamcode.c
 * loaders/lib/runtimes/beam/beamname.c loaders/lib/runtimes/beam/beamcall.c
 * loaders/lib/runtimes/beam/beamrun.c
 */
#include <stdlib.h>
#include <string.h>

#include "loaders/lib/runtimes/beam/beam.h"
#include "loaders/lib/runtimes/beam/beamname.h"
#include "probes/runtimes/beam_layout.h"
#include "tests/fuzz/runtimes/bytes.h"

#define FS_BASE 0x7f0000001000ull

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

static void name(const uint8_t *data, size_t len)
{
	char text[512];

	len = len < sizeof(text) ? len : sizeof(text) - 1;
	memcpy(text, data, len);
	text[len] = 0;
	free(beamname_of_perf(text));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	/* seeds.sh goes by it */
	const struct beam_layout l = {.format = BEAM_FORMAT,
				      .version = 25,
				      .active = BASE + 0x80,
				      .atoms = BASE + 0x88,
				      .exit = BASE + 0x148,
				      .frames = BASE + 0x150,
				      .data = BASE,
				      .data_end = BASE + 0x80,
				      .schedulers = {BASE + 0x90, BASE + 0x98, 0}};
	struct bytes b = {data + 1, len ? len - 1 : 0};
	const struct runtime_memory m = {&b, read_bytes};
	struct beam_at at = {.pc = BASE + 0x800, .sp = BASE + 0x160, .copied = 0x100};
	struct script_stack s = {0};
	struct runtime_follow to;
	enum beam_end end;
	struct beam *beam;
	uint64_t running;
	uint32_t top;

	if (!len)
		return 0;
	name(data + 1, len - 1);
	at.interrupted = !(data[0] & 1);
	at.pc += data[0] & 2 ? 0x100 : 0;
	if (data[0] & 4) {
		at.stored = (struct beam_piece){BASE + 0x160, 0x100};
		at.at_bp = (struct beam_piece){BASE + 0x168, 0xf8};
		at.bp = at.at_bp.at;
	}
	beam = beam_open(&m, &l, sizeof(l), 0);
	if (beam && beam_sampled(beam, &at, &to, &end, &s))
		for (size_t i = 0; i < s.n; i++)
			if (!s.frames[i].place.function ||
			    (s.frames[i].place.line && !s.frames[i].place.file))
				abort();
	if (s.n > SCRIPT_STACK_MAX)
		abort();
	for (int i = 0; beam && i < 3; i++)
		if (beam_thread(beam, FS_BASE, i == 2 ? BASE + 0x1100 : 0, &running, &top) &&
		    (running & 7 || !top))
			abort();
	script_stack_release(&s);
	beam_close(beam);
	return 0;
}
