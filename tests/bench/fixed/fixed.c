/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fixed: the user-space work of a capture over a fixed input, so that its instructions can be
 * counted (ratchet.py does so with valgrind: they are the same on a busy host).
 *
 *   fixed processes N        N processes that fork, exec and end without a sample, as sonde-maps
 *                            reads them from the side-band and sends them, and as a loader takes
 *                            them in and counts their ends; tables are not published
 *   fixed samples N INDEX    N samples of 40 native frames in 64 different stacks, as a loader
 *                            names them and puts them into a store, ten batches in all
 *   fixed scripts N INDEX    the same with 20 script frames in place of as many native ones
 *
 * INDEX is an image index of a file with enough functions. Nothing of the host is read.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/bench/fixed/fixed.h"

#include "loaders/lib/host/maps/hostmaps.h"
#include "loaders/lib/host/maps/hostmaps_packet.h"
#include "schema/base/clock.h"

struct fixed fixed_open(const char *folder)
{
	struct store_writer_opts so = {.dir = folder};
	struct store_run run = {.family = "cpu", .options = "fixed", .bucket_s = 1};
	struct fixed f = {.hm = hostmaps_new(), .from_ns = (uint64_t)clock_boot_ns()};
	struct err e = {0};

	if (store_writer_open(&so, &f.store, &e) || naming_open(f.hm, f.store, NULL, &f.naming, &e))
		exit(err_report(&e, "fixed"));
	run.from_ns = clock_utc_ns();
	run.period_ns = NSEC_PER_SEC / 99;
	run.cpus = 2;
	f.run = store_run_begin(f.store, &run);
	naming_run(f.naming, f.run);
	return f;
}

void fixed_close(struct fixed *f)
{
	naming_close(f->naming);
	store_writer_close(f->store, 10000, NULL);
	hostmaps_close(f->hm);
}

int main(int argc, char **argv)
{
	char folder[] = "/tmp/sonde-fixed-XXXXXX", remove[64];
	int rc;

	if (argc < 3 || !mkdtemp(folder))
		return EXIT_USAGE;
	if (!strcmp(argv[1], "processes"))
		rc = fixed_processes(folder, atol(argv[2]));
	else if (argc > 3)
		rc = fixed_samples(folder, atol(argv[2]), argv[3], !strcmp(argv[1], "scripts"));
	else
		rc = EXIT_USAGE;
	snprintf(remove, sizeof(remove), "rm -rf %s", folder);
	return system(remove) ? EXIT_RUNTIME : rc;
}
