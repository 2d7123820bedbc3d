/* SPDX-License-Identifier: Apache-2.0 */
#include "loaders/mem/hugefaults.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "schema/base/clock.h"
#include "schema/base/hash.h"

#define FOLDER   "/sys/kernel/mm/transparent_hugepage/"
#define TEXT_MAX 16384
#define SMALL    4096ull
#define ORDERS   20

uint32_t hugefaults_order_of(const char *enabled, const char *size)
{
	uint64_t bytes = strtoull(size, NULL, 10);

	if (strstr(enabled, "[never]"))
		return 0;
	for (uint32_t order = 1; order < ORDERS; order++)
		if (bytes == SMALL << order)
			return order;
	return 0;
}

static ssize_t text_read(const char *path, char *text, size_t size)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t n = fd < 0 ? -1 : read(fd, text, size - 1);

	if (fd >= 0)
		close(fd);
	text[n < 0 ? 0 : n] = '\0';
	return n;
}

uint32_t hugefaults_order(void)
{
	char enabled[128], size[64];

	if (text_read(FOLDER "enabled", enabled, sizeof(enabled)) < 0 ||
	    text_read(FOLDER "hpage_pmd_size", size, sizeof(size)) < 0)
		return 0;
	return hugefaults_order_of(enabled, size);
}

int hugefaults_parse(const char *text, size_t len, uint64_t *faults, uint64_t *allocs)
{
	unsigned long long n, huge = 0, sum = 0;
	bool found = false;
	char line[128];

	for (size_t at = 0; at < len;) {
		const char *end = memchr(text + at, '\n', len - at);
		size_t size = end ? (size_t)(end - text) - at : len - at;

		if (size < sizeof(line)) {
			memcpy(line, text + at, size);
			line[size] = '\0';
			if (sscanf(line, "thp_fault_alloc %llu", &n) == 1) {
				huge = n;
				found = true;
			} else if (sscanf(line, "pgalloc_%*s %llu", &n) == 1) {
				sum += n;
			}
		}
		at += size + 1;
	}
	if (!found)
		return -EBADMSG;
	*faults = huge;
	*allocs = sum;
	return 0;
}

void hugefaults_open(struct hugefaults *x, bool attends, uint32_t rate)
{
	*x = (struct hugefaults){
		.fd = -1, .attends = attends, .every = 1, .turns = 1, .random = HASH_SEED};
	period_init(&x->period, 0, rate, 1);
	if (!attends)
		x->fd = open("/proc/vmstat", O_RDONLY | O_CLOEXEC);
}

void hugefaults_close(struct hugefaults *x)
{
	if (x->fd >= 0)
		close(x->fd);
	*x = (struct hugefaults){.fd = -1, .every = 1, .turns = 1};
}

/* In which part of the seconds it may run, for what it costs: one in this many. */
static uint32_t turns_of(const struct hugefaults *x, uint64_t allocs, int64_t now_ns)
{
	const double seconds = (double)(now_ns - x->asked_ns) / NSEC_PER_SEC;
	const double rate =
		seconds > 0 && allocs > x->allocs ? (double)(allocs - x->allocs) / seconds : 0;

	return rate < HUGEFAULTS_ALLOCS ? 1 :
	       rate > HUGEFAULTS_ALLOCS * HUGEFAULTS_TURNS ?
					  HUGEFAULTS_TURNS :
					  (uint32_t)(rate / HUGEFAULTS_ALLOCS) + 1;
}

/* Is it this second's turn? */
static bool turn_is(struct hugefaults *x)
{
	if (!x->left || x->left > x->turns) {
		x->random = hash_u64(HASH_SEED, x->random);
		x->left = x->turns;
		x->turn = (uint32_t)(x->random % x->turns) + 1;
	}
	return x->left-- == x->turn;
}

void hugefaults_decide(struct hugefaults *x, uint64_t faults, uint64_t allocs, int64_t now_ns)
{
	const bool met = x->asked_ns && faults != x->faults;
	bool begins;

	if (met)
		x->met_ns = now_ns;
	begins = !x->active;
	x->active = x->met_ns && now_ns - x->met_ns < HUGEFAULTS_OVER_NS;
	x->turns = begins ? 1 : turns_of(x, allocs, now_ns);
	x->left = begins ? 0 : x->left;
	x->on = x->active && turn_is(x);
	x->faults = faults;
	x->allocs = allocs;
	x->asked_ns = now_ns;
}

static void ask(struct hugefaults *x, int64_t now_ns)
{
	static char text[TEXT_MAX];
	uint64_t faults, allocs;
	size_t len = 0;
	ssize_t n;

	/* a page at a time */
	while (len < sizeof(text) &&
	       (n = pread(x->fd, text + len, sizeof(text) - len, (off_t)len)) > 0)
		len += (size_t)n;
	if (!hugefaults_parse(text, len, &faults, &allocs))
		hugefaults_decide(x, faults, allocs, now_ns);
}

void hugefaults_tick(struct hugefaults *x, uint64_t seen, int64_t now_ns)
{
	x->on |= x->attends;
	if (x->fd >= 0 && (x->active || now_ns - x->asked_ns >= HUGEFAULTS_ASK_NS))
		ask(x, now_ns);
	if (x->on)
		x->every = period_next(&x->period, seen, now_ns);
}

bool hugefaults_met(const struct hugefaults *x, uint64_t seen)
{
	return x->met_ns || seen;
}
