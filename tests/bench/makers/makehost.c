/* SPDX-License-Identifier: Apache-2.0 */
/*
 * makehost: what family host stores in an hour of a homelab, for tests/bench/minutes.py: 30
 * containers, 25 other cgroups and 500 processes, in buckets of 10 s.
 *
 *   makehost DIR [MINUTES]        (60)
 *
 * Who does something has a row in each bucket, who does little one a minute, who sleeps one in ten
 * (loaders/lib/bpf/run/meter.h). Of the containers 18 do something, of the other cgroups 10, of the
 * processes 40; 60 more do little. Counters are random about a mean of their own, sizes walk:
 * nothing in it repeats that would not repeat in life.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "schema/base/clock.h"
#include "schema/base/err.h"
#include "schema/base/mem.h"
#include "schema/facts/host.h"
#include "schema/store/write/facts.h"
#include "schema/store/write/writer.h"

#define BUCKET_S   10
#define CONTAINERS 30
#define CGROUPS    55
#define PROCESSES  500
#define ENDED      20

static uint64_t state = 88172645463325252ull;
static int64_t walk[CGROUPS + PROCESSES + 64][8]; /* sizes that go on from bucket to bucket */

struct home {
	struct store_writer *w;
	uint32_t run, epoch;
	uint32_t container[CONTAINERS], process[PROCESSES];
	int64_t ts;
	int rc;
};

static uint32_t below(uint32_t n)
{
	state ^= state << 13;
	state ^= state >> 7;
	state ^= state << 17;
	return (uint32_t)((state >> 32) * n >> 32);
}

/* About `mean`, twice of it at most. */
static uint64_t about(uint64_t mean)
{
	return mean ? mean / 2 + (uint64_t)((double)mean * ((double)below(1u << 30) / (1u << 30)) *
					    1.0) :
		      0;
}

/* Pages come and go. */
static uint64_t size_of(size_t thing, size_t which, uint64_t begin)
{
	int64_t *x = &walk[thing][which];

	*x = *x ? *x : (int64_t)begin;
	*x += ((int64_t)below(201) - 100) * 4096;
	*x = *x < 1 << 20 ? 1 << 20 : *x;
	return (uint64_t)*x;
}

static void cgroup_name(size_t i, char out[96])
{
	if (i < CONTAINERS)
		snprintf(out, 96, "/docker/%016zx%016zx%016zx%016zx", i * 0x9e3779b97f4a7c15u,
			 i * 0xc2b2ae3d27d4eb4fu, i * 0x165667b19e3779f9u, i * 7919u);
	else
		snprintf(out, 96, "/system.slice/service-%zu.service", i);
}

static void dictionary(struct home *h)
{
	char cgroup[96], name[32], comm[16];

	h->epoch = store_epoch(h->w);
	for (size_t i = 0; i < CONTAINERS; i++) {
		struct store_container c = {.runtime = "docker",
					    .runtime_id = cgroup + 8,
					    .name = name,
					    .image = "registry/app:latest",
					    .cgroup = cgroup};

		cgroup_name(i, cgroup);
		snprintf(name, sizeof(name), "app-%zu", i);
		h->container[i] = store_container(h->w, &c);
	}
	for (size_t i = 0; i < PROCESSES; i++) {
		char args[96];
		struct store_process p = {
			.pid = 1000 + (uint32_t)i * 7,
			.ppid = 1,
			.exec_id = 2,
			.start_ns = 1795000000ll * NSEC_PER_SEC,
			.start_ticks = 5000 + i * 977,
			.comm = comm,
			.exe = "/usr/lib/app/bin/worker",
			.args = args,
			.cgroup = cgroup,
			.unit = "",
			.container = i % 60 < CONTAINERS ? h->container[i % CONTAINERS] : 0};

		cgroup_name(i % 60 < CONTAINERS ? i % CONTAINERS : CONTAINERS + i % 25, cgroup);
		snprintf(comm, sizeof(comm), "worker-%zu", i % 90);
		snprintf(args, sizeof(args),
			 "/usr/lib/app/bin/worker --config /etc/app/%zu.conf --listen %zu", i % 90,
			 2000 + i);
		h->process[i] = store_process(h->w, &p);
	}
}

/* In which bucket of the hour a thing has a row. */
static bool is_due(int64_t ts, size_t i, size_t active, size_t little)
{
	int64_t n = ts / BUCKET_S;

	if (i < active)
		return true;
	return i < little ? n % 6 == (int64_t)i % 6 : n % 60 == (int64_t)i % 60;
}

static void put(struct home *h, const struct fact *f, struct fact_row *row)
{
	int rc = store_fact(h->w, h->run, h->ts * NSEC_PER_SEC, f, row);

	h->rc = rc && rc != -ESTALE ? rc : h->rc;
}

static void host_row(struct home *h)
{
	struct fact_row row = {0};

	for (int i = 0; i < (int)HOST_N; i++) {
		const bool counter = HOST_FACT.columns[i].role != FACT_GAUGE,
			   bytes = !strcmp(HOST_FACT.columns[i].unit, "bytes");

		fact_put(&row, i,
			 counter ? about(i < HOST_FORKS ? 2000000 : 3000) :
			 bytes   ? size_of(0, (size_t)i % 8, 4ull << 30) :
				   below(40));
	}
	put(h, &HOST_FACT, &row);
}

static void cgroup_row(struct home *h, size_t i)
{
	const size_t active = i < CONTAINERS ? 18 : 10, at = i < CONTAINERS ? i : i - CONTAINERS;
	struct fact_row row = {0};
	char path[96], unit[48];
	uint64_t mean;

	if (!is_due(h->ts, at, active, 999))
		return;
	cgroup_name(i, path);
	snprintf(unit, sizeof(unit), "service-%zu.service", i);
	fact_put_text(&row, CGROUP_PATH, path);
	fact_put(&row, CGROUP_CONTAINER, i < CONTAINERS ? h->container[i] : 0);
	fact_put_text(&row, CGROUP_UNIT, i < CONTAINERS ? "" : unit);
	mean = at < 8 ? 400000 : at < active ? 40000 : 4000;
	fact_put(&row, CGROUP_USER, about(mean));
	fact_put(&row, CGROUP_SYSTEM, about(mean / 3));
	for (int c = CGROUP_MEM; c <= CGROUP_KERNEL; c++)
		fact_put(&row, c,
			 at < active ? size_of(1 + i, (size_t)c % 8, 100ull << 20) :
				       (100 + i) << 20);
	fact_put(&row, CGROUP_SWAP, 0);
	fact_put(&row, CGROUP_MAJFLT, below(40) ? 0 : below(9));
	/* memory is not short; disks are waited for where there is I/O */
	for (int c = CGROUP_PSI_CPU; c <= CGROUP_PSI_IO_FULL; c++)
		fact_put(&row, c,
			 at >= active ? 0 :
			 c == CGROUP_PSI_CPU || (c >= CGROUP_PSI_IO && at % 3 == 0) ?
					about(mean / 20) :
					0);
	for (int c = CGROUP_READ_BYTES; c <= CGROUP_WRITES; c++)
		fact_put(&row, c, at % 3 ? 0 : about(c < CGROUP_READS ? 65536 : 9) / 4 * 4);
	if (i < CONTAINERS)
		for (int c = CGROUP_RX_BYTES; c <= CGROUP_TX_PACKETS; c++)
			fact_put(&row, c,
				 at < active ? about(c == CGROUP_RX_BYTES || c == CGROUP_TX_BYTES ?
							     80000 :
							     200) :
					       0);
	fact_put(&row, CGROUP_PIDS, 4 + i % 20 + (below(20) ? 0 : 1));
	if (i % 4 == 0)
		fact_put(&row, CGROUP_MEM_LIMIT, 1ull << 30);
	put(h, &CGROUP_FACT, &row);
}

static void nic_row(struct home *h, size_t i)
{
	struct fact_row row = {0};

	if (!is_due(h->ts, i, 18, 999))
		return;
	fact_put_text(&row, NIC_NAME, "eth0");
	fact_put(&row, NIC_CONTAINER, h->container[i]);
	for (int c = NIC_RX_BYTES; c < (int)NIC_N; c++)
		fact_put(&row, c,
			 c == NIC_RX_BYTES || c == NIC_TX_BYTES     ? about(80000) :
			 c == NIC_RX_PACKETS || c == NIC_TX_PACKETS ? about(200) :
								      0);
	put(h, &NIC_FACT, &row);
}

static void process_row(struct home *h, size_t i)
{
	struct fact_row row = {0};

	if (!is_due(h->ts, i, 40, 100))
		return;
	fact_put(&row, PROCESS_ID, h->process[i]);
	fact_put(&row, PROCESS_USER, i < 100 ? about(i < 40 ? 12 : 1) * 10000 : 0); /* ticks */
	fact_put(&row, PROCESS_SYSTEM, i < 100 ? about(i < 40 ? 4 : 1) * 10000 : 0);
	if (i % 3 == 0)
		fact_put(&row, PROCESS_DELAY, i < 100 ? about(9000) : 0);
	fact_put(&row, PROCESS_MINFLT, i < 100 ? about(60) : 0);
	fact_put(&row, PROCESS_MAJFLT, 0);
	fact_put(&row, PROCESS_READ_BYTES, 0);
	fact_put(&row, PROCESS_WRITE_BYTES, i < 40 && i % 4 == 0 ? about(20) * 4096 : 0);
	fact_put(&row, PROCESS_RSS,
		 i < 40 ? size_of(1 + CGROUPS + i, 0, 40ull << 20) : (40ull + i) << 20);
	fact_put(&row, PROCESS_THREADS, 1 + i % 12);
	fact_put(&row, PROCESS_FDS, 8 + i % 40 + (i < 40 ? below(4) : 0));
	put(h, &PROCESS_FACT, &row);
}

static void ended_row(struct home *h, size_t i)
{
	struct fact_row row = {0};
	char path[96], comm[16];

	if (h->ts / BUCKET_S % 3 != (int64_t)i % 3) /* a health check every 30 s */
		return;
	cgroup_name(i, path);
	snprintf(comm, sizeof(comm), "check-%zu", i % 7);
	fact_put_text(&row, ENDED_CGROUP, path);
	fact_put_text(&row, ENDED_COMM, comm);
	fact_put(&row, ENDED_CONTAINER, h->container[i]);
	for (int c = ENDED_SELF; c < (int)ENDED_N_COLUMNS; c++)
		fact_put(&row, c,
			 c == ENDED_SELF || c == ENDED_READ_BYTES || c == ENDED_WRITE_BYTES ||
					 c == ENDED_MAJFLT ?
				 0 :
			 c == ENDED_N       ? 1 + below(3) :
			 c == ENDED_RSS_MAX ? (3000 + below(40)) * 4096ull :
					      about(4000));
	put(h, &ENDED_FACT, &row);
}

static void disk_row(struct home *h, size_t i)
{
	struct fact_row row = {0};
	char name[16];

	snprintf(name, sizeof(name), "nvme0n1p%zu", i);
	fact_put_text(&row, DISK_NAME, name);
	for (int c = DISK_READS; c < (int)DISK_N; c++)
		fact_put(&row, c,
			 c == DISK_IN_FLIGHT ?
				 0 :
				 about(c == DISK_READ_BYTES || c == DISK_WRITE_BYTES ? 2000000 :
										       900));
	put(h, &DISK_FACT, &row);
}

static void fs_row(struct home *h, size_t i)
{
	struct fact_row row = {0};
	char mount[32];

	if (!is_due(h->ts, i, 1, 8))
		return;
	snprintf(mount, sizeof(mount), "/srv/volume-%zu", i);
	fact_put_text(&row, FS_MOUNT, mount);
	fact_put_text(&row, FS_SOURCE, "/dev/nvme0n1p2");
	fact_put_text(&row, FS_TYPE, "ext4");
	fact_put(&row, FS_SIZE, 500ull << 30);
	for (int c = FS_FREE; c <= FS_AVAILABLE; c++)
		fact_put(&row, c,
			 size_of(CGROUPS + PROCESSES + 2 + i, (size_t)c % 8, 100ull << 30));
	fact_put(&row, FS_INODES, 32ull << 20);
	fact_put(&row, FS_INODES_FREE, (30ull << 20) - below(1000));
	put(h, &FS_FACT, &row);
}

static void bucket(struct home *h)
{
	if (h->epoch != store_epoch(h->w))
		dictionary(h);
	host_row(h);
	for (size_t i = 0; i < CGROUPS; i++)
		cgroup_row(h, i);
	for (size_t i = 0; i < CONTAINERS; i++)
		nic_row(h, i);
	for (size_t i = 0; i < PROCESSES; i++)
		process_row(h, i);
	for (size_t i = 0; i < ENDED; i++)
		ended_row(h, i);
	for (size_t i = 0; i < 3; i++)
		disk_row(h, i);
	for (size_t i = 0; i < 8; i++)
		fs_row(h, i);
	store_run_until(h->w, h->run, (h->ts + BUCKET_S) * NSEC_PER_SEC);
	store_flush(h->w);
}

int main(int argc, char **argv)
{
	struct store_writer_opts o = {.dir = argc > 1 ? argv[1] : "",
				      .max_bytes = 256u << 20,
				      .segment_bytes = 4ull << 30};
	struct store_run r = {.family = "host",
			      .options = "sonde-host",
			      .scope = STORE_SCOPE_HOST,
			      .bucket_s = BUCKET_S,
			      .cpus = 8,
			      .boot_offset_ns = clock_boot_offset_ns()};
	const long minutes = argc > 2 ? atol(argv[2]) : 60;
	struct home h = {0};
	struct err e = {0};
	int64_t end;
	int rc;

	if (argc < 2 || argc > 3 || minutes < 1 || minutes > 1440) {
		fprintf(stderr, "makehost DIR [MINUTES]\n");
		return EXIT_USAGE;
	}
	end = clock_utc_ns() / NSEC_PER_SEC / 60 * 60;
	h.ts = end - minutes * 60;
	r.from_ns = h.ts * NSEC_PER_SEC;
	rc = store_writer_open(&o, &h.w, &e);
	if (rc)
		return err_report(&e, "makehost");
	h.run = store_run_begin(h.w, &r);
	dictionary(&h);
	for (; h.ts < end; h.ts += BUCKET_S)
		bucket(&h);
	rc = store_writer_close(h.w, 120000, &e);
	if (!rc && h.rc)
		rc = err_set(&e, h.rc, EXIT_STORE, "the store refuses rows");
	return rc ? err_report(&e, "makehost") : 0;
}
