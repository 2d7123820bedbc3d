/* SPDX-License-Identifier: Apache-2.0 */
/*
 * waits run KIND[:THREADS[:COUNT[:MILLISECONDS]]]...
 *         each thread waits COUNT times, each time about MILLISECONDS long
 * waits stand KIND...
 *         each kind once, until standard input ends
 *
 * Kinds: sleep futex pipe poll recv accept disk fault stop. A wait's partner thread ends it. The
 * partner checks in /proc that the waiter is asleep before the planned time begins, so that one
 * wait is one sleep, however busy the machine is. The waits of `disk` are O_DIRECT reads of a file
 * in the working directory and last as long as the reads take. `fault` is a page that a
 * userfaultfd's owner fills late; `stop` is a child process, stopped and continued.
 *
 * Every third wait is called by way_b, all others by way_a. `run` prints for each thread (name
 * w-KIND-N): how many waits, their time by the clock, in total and by caller, the longest, and what
 * the kernel says of the thread itself: its CPU time and its time ready to run without a CPU
 * (schedstat), its time on a CPU (task-clock, which includes the time that a hypervisor took), and
 * its switches (rusage). `stand` prints, when all threads are asleep, for each its tid, its name,
 * and the boot clock just before the wait.
 */
#include "waits.h"

#include <pthread.h>
#include <semaphore.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "taskclock.h"

#define MOST 64

static struct waiter waiters[MOST];
static int n_waiters;

static NOINLINE void way_a(struct waiter *w)
{
	w->kind->wait(w);
	__asm__ volatile("");
}

static NOINLINE void way_b(struct waiter *w)
{
	w->kind->wait(w);
	__asm__ volatile("");
}

/* --- the waiting side --- */

static void account(struct waiter *w, bool b, uint64_t ns)
{
	w->way_count[b]++;
	w->way_ns[b] += ns;
	if (ns > w->max_ns)
		w->max_ns = ns;
}

static void told(struct waiter *w, int clock)
{
	char path[64], line[128] = "";
	unsigned long long cpu = 0, delay = 0;
	struct rusage ru;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/self/task/%d/schedstat", (int)w->tid);
	f = fopen(path, "re");
	if (f && fgets(line, sizeof(line), f))
		sscanf(line, "%llu %llu", &cpu, &delay);
	if (f)
		fclose(f);
	getrusage(RUSAGE_THREAD, &ru);
	w->cpu_ns = cpu;
	w->ran_ns = taskclock_close(clock, cpu);
	w->delay_ns = delay;
	w->switches = (uint64_t)ru.ru_nvcsw;
	w->preempted = (uint64_t)ru.ru_nivcsw;
}

void *waits_waiter(void *arg)
{
	struct waiter *w = arg;
	uint64_t began = work_ns(CLOCK_BOOTTIME);
	int clock = taskclock_open();

	w->tid = (pid_t)syscall(SYS_gettid);
	prctl(PR_SET_NAME, w->name);
	for (int i = 0; i < w->count; i++) {
		uint64_t before;

		if (w->kind->partner) /* before the ask: the partner may look at once */
			sem_post(&w->ask);
		before = work_ns(CLOCK_BOOTTIME);
		w->since_ns = before;
		if (i % 3 == 2)
			way_b(w);
		else
			way_a(w);
		account(w, i % 3 == 2, work_ns(CLOCK_BOOTTIME) - before);
	}
	told(w, clock);
	w->wall_ns = work_ns(CLOCK_BOOTTIME) - began;
	return NULL;
}

/* --- the other side --- */

/* Is the thread asleep? (/proc/TID shows the thread itself, though no listing has it.) */
bool waits_asleep(pid_t tid, const char *states)
{
	char path[64], line[512] = "";
	const char *close;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%d/stat", (int)tid);
	f = fopen(path, "re");
	if (f && !fgets(line, sizeof(line), f))
		line[0] = '\0';
	if (f)
		fclose(f);
	close = strrchr(line, ')');
	return close && close[1] && strchr(states, close[2]);
}

static void *partner(void *arg)
{
	struct waiter *w = arg;

	prctl(PR_SET_NAME, "partner");
	for (int i = 0; i < w->count; i++) {
		sem_wait(&w->ask);
		while (!w->tid || !waits_asleep(w->tid, "SD"))
			usleep(50);
		if (w->stand)
			sem_wait(&w->go);
		else
			waits_nap(w->nap_ns);
		w->kind->partner(w);
	}
	return NULL;
}

void waits_nap(uint64_t ns)
{
	struct timespec t = {(time_t)(ns / 1000000000u), (long)(ns % 1000000000u)};

	while (nanosleep(&t, &t))
		;
}

/* --- the plan --- */

static void plan(const char *word, bool stand)
{
	char name[16] = "";
	int threads = 1, count = stand ? 1 : 100;
	double ms = 5;
	const struct kind *kind = NULL;

	sscanf(word, "%15[a-z]:%d:%d:%lf", name, &threads, &count, &ms);
	for (const struct kind *k = KINDS; k->name && !kind; k++)
		kind = strcmp(k->name, name) ? NULL : k;
	if (!kind || threads < 1 || n_waiters + threads > MOST) {
		fprintf(stderr, "waits: '%s' is no kind of wait, or too many threads\n", word);
		exit(2);
	}
	for (int i = 0; i < threads; i++) {
		struct waiter *w = &waiters[n_waiters++];

		w->kind = kind;
		w->stand = stand;
		w->count = count;
		w->nap_ns = (uint64_t)(ms * 1e6);
		snprintf(w->name, sizeof(w->name), "w-%.8s-%u", name, (unsigned)i % 100);
		sem_init(&w->ask, 0, 0);
		sem_init(&w->go, 0, 0);
		if (kind->init && kind->init(w)) {
			fprintf(stderr, "waits: %s cannot be made here\n", name);
			exit(3);
		}
	}
}

static void print_all(void)
{
	printf("{\"pid\": %d, \"threads\": [", getpid());
	for (struct waiter *w = waiters; w < waiters + n_waiters; w++)
		printf("%s{\"tid\": %d, \"name\": \"%s\", \"kind\": \"%s\", \"since_ns\": %llu, \"count\": %llu, \"ns\": %llu, "
		       "\"a_count\": %llu, \"a_ns\": %llu, \"b_count\": %llu, \"b_ns\": %llu, \"max_ns\": %llu, "
		       "\"wall_ns\": %llu, \"cpu_ns\": %llu, \"ran_ns\": %llu, \"delay_ns\": %llu, \"switches\": %llu, "
		       "\"preempted\": %llu}",
		       w == waiters ? "" : ", ", (int)w->tid, w->name, w->kind->name,
		       (unsigned long long)w->since_ns,
		       (unsigned long long)(w->way_count[0] + w->way_count[1]),
		       (unsigned long long)(w->way_ns[0] + w->way_ns[1]),
		       (unsigned long long)w->way_count[0], (unsigned long long)w->way_ns[0],
		       (unsigned long long)w->way_count[1], (unsigned long long)w->way_ns[1],
		       (unsigned long long)w->max_ns, (unsigned long long)w->wall_ns,
		       (unsigned long long)w->cpu_ns, (unsigned long long)w->ran_ns,
		       (unsigned long long)w->delay_ns, (unsigned long long)w->switches,
		       (unsigned long long)w->preempted);
	puts("]}");
	fflush(stdout);
}

static void stand_until_told(void)
{
	char c;

	for (struct waiter *w = waiters; w < waiters + n_waiters; w++)
		while (!w->tid || !waits_asleep(w->tid, "SDT"))
			usleep(1000);
	print_all();
	while (read(0, &c, 1) > 0)
		;
	_exit(0);
}

int main(int argc, char **argv)
{
	bool stand = argc > 1 && !strcmp(argv[1], "stand");

	if (argc < 3 || (!stand && strcmp(argv[1], "run"))) {
		fputs("usage: waits run KIND[:THREADS[:COUNT[:MS]]]... | waits stand KIND...\n",
		      stderr);
		return 2;
	}
	for (int i = 2; i < argc; i++)
		plan(argv[i], stand);
	for (struct waiter *w = waiters; w < waiters + n_waiters; w++) {
		if (w->kind->partner)
			pthread_create(&w->partner, NULL, partner, w);
		pthread_create(&w->thread, NULL, w->kind->run ? w->kind->run : waits_waiter, w);
	}
	if (stand)
		stand_until_told();
	for (struct waiter *w = waiters; w < waiters + n_waiters; w++) {
		pthread_join(w->thread, NULL);
		if (w->kind->partner)
			pthread_join(w->partner, NULL);
	}
	print_all();
	return 0;
}
