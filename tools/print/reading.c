/* SPDX-License-Identifier: Apache-2.0 */
/* reading: A thread watches the time: one file alone may take seconds. */
#include "tools/print/reading.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>

#include "schema/base/cli/escapes.h"
#include "schema/base/clock.h"
#include "tools/print/pager.h"

#define TERMINAL_MS       1000
#define TERMINAL_EVERY_MS 250
#define LOG_MS            10000

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t ended = PTHREAD_COND_INITIALIZER;
static pthread_t watch;
static bool quiet, watching, done, shown;
static unsigned depth;
static size_t at, of;
static int64_t began_ns, said_ns;

void reading_quiet(void)
{
	quiet = true;
}

static void say(int fd, bool terminal)
{
	char line[128];
	int n = snprintf(line, sizeof(line), "%ssonde: reading the store, %lld s",
			 terminal ? "\r" : "",
			 (long long)((clock_boot_ns() - began_ns) / NSEC_PER_SEC));

	if (of > 1)
		n += snprintf(line + n, sizeof(line) - (size_t)n, ", file %zu of %zu", at + 1, of);
	n += snprintf(line + n, sizeof(line) - (size_t)n, "%s", terminal ? "\033[K" : "\n");
	shown = write(fd, line, (size_t)n) > 0;
	said_ns = clock_boot_ns();
}

/* Waits so long, or until the reading has ended. The lock is held. */
static void wait_ms(int64_t ms)
{
	struct timespec t;

	clock_gettime(CLOCK_REALTIME, &t);
	t.tv_sec += ms / 1000;
	t.tv_nsec += ms % 1000 * 1000000;
	t.tv_sec += t.tv_nsec / (long)NSEC_PER_SEC;
	t.tv_nsec %= (long)NSEC_PER_SEC;
	while (!done && pthread_cond_timedwait(&ended, &lock, &t) != ETIMEDOUT)
		;
}

static void *watcher(void *ctx)
{
	const int fd = pager_terminal();
	const bool terminal = escapes_on(fd);
	const int64_t first_ms = terminal ? TERMINAL_MS : LOG_MS;
	int64_t now, wait;

	(void)ctx;
	pthread_mutex_lock(&lock);
	now = clock_boot_ns();
	wait = first_ms - (now - began_ns) / 1000000;
	if (said_ns && !terminal) /* of an earlier file, a moment ago */
		wait = first_ms - (now - said_ns) / 1000000;
	wait_ms(wait > 0 ? wait : 0);
	while (!done) {
		say(fd, terminal);
		wait_ms(terminal ? TERMINAL_EVERY_MS : LOG_MS);
	}
	if (shown && terminal && write(fd, "\r\033[K", 4) == 4)
		shown = false;
	pthread_mutex_unlock(&lock);
	return NULL;
}

/* Readings of several threads may overlap: one is begun before the others, and ends behind them. */
static unsigned count(int more)
{
	unsigned now;

	pthread_mutex_lock(&lock);
	now = depth += (unsigned)more;
	pthread_mutex_unlock(&lock);
	return now;
}

void reading_begin(size_t files)
{
	sigset_t all, was;

	if (count(1) != 1 || quiet)
		return;
	at = 0;
	of = files;
	done = false;
	began_ns = began_ns ? began_ns : clock_boot_ns();
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &was); /* signals are the reader's */
	watching = !pthread_create(&watch, NULL, watcher, NULL);
	pthread_sigmask(SIG_SETMASK, &was, NULL);
}

void reading_file(size_t nth)
{
	pthread_mutex_lock(&lock);
	at = depth == 1 ? nth : at;
	pthread_mutex_unlock(&lock);
}

void reading_end(void)
{
	if (count(-1) || !watching)
		return;
	pthread_mutex_lock(&lock);
	done = true;
	pthread_cond_signal(&ended);
	pthread_mutex_unlock(&lock);
	pthread_join(watch, NULL);
	watching = false;
}
