/* SPDX-License-Identifier: Apache-2.0 */
/*
 * capture_vigil: a second thread that goes on counting while the loop does not turn: it hangs, or
 * waits for a disk that does not answer. What the family's programs see meanwhile goes into the
 * tally, so that it counts as lost if the loader is killed. It wakes up once in VIGIL_NS, and once
 * a second while the loop is silent.
 */
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <time.h>

#include "loaders/lib/bpf/run/private.h"
#include "schema/base/log.h"

#define VIGIL_NS (8000 * MSEC) /* well below the watchdog's time (supervisor/children/policy.h) */

static void nap(struct capture_vigil *v, int64_t ns)
{
	int64_t until = clock_mono_ns() + ns;
	struct timespec at = {until / NSEC_PER_SEC, until % NSEC_PER_SEC};

	while (!v->stop && pthread_cond_timedwait(&v->wake, &v->lock, &at) != ETIMEDOUT)
		;
}

/* Read without the loop, which adds to these only while it turns. */
static void count(const struct capture_vigil *v)
{
	const struct capture_config *config = v->config;
	uint64_t seen = config->f->seen(config->state);

	if (seen)
		store_run_offered(config->store, config->run,
				  seen + v->host->added + v->host->refused + v->host->unknown);
}

static void *vigil_run(void *ctx)
{
	struct capture_vigil *v = ctx;
	bool silent = false;

	pthread_mutex_lock(&v->lock);
	while (!v->stop) {
		nap(v, silent ? NSEC_PER_SEC : VIGIL_NS);
		silent = clock_boot_ns() - __atomic_load_n(&v->turned_ns, __ATOMIC_RELAXED) >
			 VIGIL_NS;
		if (silent && !v->stop)
			count(v);
	}
	pthread_mutex_unlock(&v->lock);
	return NULL;
}

void capture_vigil_turned(struct capture_vigil *v)
{
	__atomic_store_n(&v->turned_ns, clock_boot_ns(), __ATOMIC_RELAXED);
}

void capture_vigil_begin(struct capture_vigil *v, const struct capture_config *config,
			 const struct family_host *host)
{
	pthread_condattr_t attr;
	sigset_t all, old;
	int rc;

	if (!config->f->seen)
		return;
	v->config = config;
	v->host = host;
	capture_vigil_turned(v);
	pthread_mutex_init(&v->lock, NULL);
	pthread_condattr_init(&attr);
	pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	pthread_cond_init(&v->wake, &attr);
	pthread_condattr_destroy(&attr);
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &old);
	rc = pthread_create(&v->thread, NULL, vigil_run, v);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	v->runs = !rc;
	if (rc)
		log_debug("cannot start a thread: %s", strerror(rc));
}

void capture_vigil_end(struct capture_vigil *v)
{
	if (!v->runs)
		return;
	pthread_mutex_lock(&v->lock);
	v->stop = true;
	pthread_cond_signal(&v->wake);
	pthread_mutex_unlock(&v->lock);
	pthread_join(v->thread, NULL);
	pthread_cond_destroy(&v->wake);
	pthread_mutex_destroy(&v->lock);
	v->runs = false;
}
