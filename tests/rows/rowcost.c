/* SPDX-License-Identifier: Apache-2.0 */
/* rowcost FILE...: what making the unwind rows of each file costs, the least CPU time of five runs,
 * reading included: "MILLISECONDS EH_FRAME_BYTES SECTION_BYTES FILE". */
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "loaders/index/unwind/unwind.h"
#include "schema/base/cleanup.h"
#include "schema/base/hash.h"

struct cost {
	int64_t ns;
	uint64_t eh_frame, section;
};

static int64_t cpu_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
	return t.tv_sec * 1000000000ll + t.tv_nsec;
}

static int once(const char *path, struct cost *c)
{
	cleanup_fd int fd = open(path, O_RDONLY | O_CLOEXEC);
	cleanup_free void *out = NULL;
	uint64_t hash = HASH_SEED, left = SOURCE_BUDGET;
	struct symset none = {0};
	struct elf_file f;
	struct source src;
	struct unwind u;
	const Elf64_Shdr *eh;
	int rc;

	if (fd < 0 || source_init_fd(&src, fd, &hash, &left) || elf_open(&f, &src, NULL))
		return -1;
	c->ns = cpu_ns();
	rc = unwind_init(&u, &f);
	if (!rc)
		rc = unwind_finish(&u, &f, &none, &out, &c->section);
	c->ns = cpu_ns() - c->ns;
	eh = elf_section_by_name(&f, ".eh_frame");
	c->eh_frame = eh ? eh->sh_size : 0;
	unwind_release(&u);
	elf_release(&f);
	return rc;
}

int main(int argc, char **argv)
{
	for (int i = 1; i < argc; i++) {
		struct cost best = {.ns = INT64_MAX}, c;

		for (int k = 0; k < 5; k++) {
			if (once(argv[i], &c)) {
				fprintf(stderr, "rowcost: cannot read %s\n", argv[i]);
				return 1;
			}
			if (c.ns < best.ns)
				best = c;
		}
		printf("%.3f %" PRIu64 " %" PRIu64 " %s\n", (double)best.ns / 1e6, best.eh_frame,
		       best.section, argv[i]);
	}
	return 0;
}
