/* SPDX-License-Identifier: Apache-2.0 */
/*
 * runtimes: the table of runtimes whose script frames can be read. Each is recognised by a section
 * of its file's index (schema/image/format.h); callers that walk threads know no runtime by name.
 */
#ifndef SONDE_RUNTIMES_RUNTIMES_H
#define SONDE_RUNTIMES_RUNTIMES_H

#include "loaders/lib/runtimes/script.h"

struct runtime_walker {
	const char *name;   /* "python", as frames say it */
	const char *module; /* "[python]" */
	uint32_t section;   /* enum image_section_kind */
	/* One process's runtime. `section`: the bytes of the index, of the file that is mapped with
	 * `bias` added to its addresses; not kept. NULL: another format, or what is there is not
	 * what the section says. `m` is borrowed until close. */
	void *(*open)(const struct runtime_memory *m, const void *section, size_t size,
		      uint64_t bias);
	void (*close)(void *runtime);
	/* Appends the script frames of a thread that does not run; nothing where it runs none. `at`
	 * never falls. */
	void (*stack)(void *runtime, const struct runtime_native *native, struct script_stack *out);
	/* Instead of `stack`, if native stacks end in code of the runtime: walks one stretch of
	 * such frames. false: no such frame from f->from on, and the native frames stay as they
	 * are. */
	bool (*follow)(void *runtime, const struct runtime_native *native, struct runtime_follow *f,
		       struct script_stack *out);
	/* Does it hold the runtime's lock, or wait for it? `futex`: on what it waits in the kernel;
	 * 0: on none. NULL: there is no such lock. */
	enum runtime_gil (*gil)(void *runtime, uint64_t fs_base, uint64_t futex);
};

extern const struct runtime_walker RUNTIME_WALKERS[];
extern const size_t RUNTIME_KIND_COUNT;

#endif
