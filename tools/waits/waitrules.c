/* SPDX-License-Identifier: Apache-2.0 */
/* waitrules: the table. */
#include "tools/waits/waitrules.h"
#include "schema/base/array.h"

#include <pthread.h>
#include <stdint.h>
#include <string.h>

static const struct waitrule RULES[] = {
	/* PostgreSQL: locks of rows and tables, of memory, of another's commit; a backend that
	   waits for its client */
	{NULL, "ProcSleep", "lock", false},
	{NULL, "LWLockAcquire", "lock", false},
	{NULL, "LWLockAcquireOrWait", "lock", false},
	{NULL, "LWLockWaitForVar", "lock", false},
	{NULL, "PGSemaphoreLock", "lock", false},
	{NULL, "SyncRepWaitForLSN", "network", false},
	{NULL, "secure_read", NULL, true},
	/* its clients, and others that poll for an answer they have asked for */
	{"poll", "pg_sleep", "sleep", false},
	{"poll", "PQgetResult", "network", false},
	{"poll", "PQexec", "network", false},
	{"poll", "mysql_real_query", "network", false},
	{"poll", "redisGetReply", "network", false},
	{"poll", "curl_easy_perform", "network", false},
	{"poll", "SSL_connect", "network", false},
	{"poll", "getaddrinfo", "network", false},
	{"poll", "res_nsend", "network", false},
	/* Python: the interpreter's lock, and its own locks */
	{"lock", "take_gil", NULL, false},
	{"lock", "drop_gil", NULL, false}, /* until another has taken it */
	{"lock", "PyThread_acquire_lock_timed", NULL, false},
	/* Go: threads without a goroutine to run; the runtime's own locks are work */
	{"lock", "runtime.lock2", NULL, false},
	{"lock", "runtime.stopm", NULL, true},
	{"lock", "runtime.findRunnable", NULL, true},
	{"lock", "runtime.findrunnable", NULL, true},
	{"lock", "runtime.templateThread", NULL, true},
	{"lock", "runtime.bgsweep", NULL, true},
	{NULL, "runtime.sysmon", NULL, true},
	/* Java: threads of the virtual machine that wait for their next task */
	{"lock", "WatcherThread::run()", NULL, true},
	{"lock", "VMThread::wait_for_vm_op()", NULL, true},
	{"lock", "CompileQueue::get(CompilerThread*)", NULL, true},
	/* the C library: a mutex is work */
	{"lock", "pthread_mutex_lock", NULL, false},
	{"lock", "__pthread_mutex_lock", NULL, false},
	{"lock", "___pthread_mutex_lock", NULL, false},
	{"lock", "__GI___pthread_mutex_lock", NULL, false},
	{"lock", "__pthread_rwlock_rdlock", NULL, false},
	{"lock", "__pthread_rwlock_wrlock", NULL, false},
	/* it is not called yet */
	{"network", "accept", NULL, true},
	{"network", "accept4", NULL, true},
	{"network", "do_accept", NULL, true},
	{"network", "inet_csk_accept", NULL, true},
	{"network", "unix_accept", NULL, true},
	/* kernel threads */
	{"other", "kthread", NULL, true},
	{"other", "io_wq_worker", NULL, true},
};

/* A condition is what a worker waits at until there is some work; Python's interpreter lock is one,
 * too. */
static const struct waitrule WEAK[] = {
	{"lock", "pthread_cond_wait", NULL, true},
	{"lock", "__pthread_cond_wait", NULL, true},
	{"lock", "___pthread_cond_wait", NULL, true},
	{"lock", "pthread_cond_timedwait", NULL, true},
	{"lock", "__pthread_cond_timedwait", NULL, true},
	{"lock", "___pthread_cond_timedwait", NULL, true},
	{"lock", "__pthread_cond_wait_common", NULL, true},
	{"lock", "uv_cond_wait", NULL, true},
	{"lock", "uv_sem_wait", NULL, true},
};

/* Stacks are many and rules few: the two letters that a function begins with say of most that no
 * rule names it. A bit by both. */
static uint64_t beginnings[1 << 16 >> 6];
static pthread_once_t beginnings_once = PTHREAD_ONCE_INIT;

static unsigned beginning_of(const char *function)
{
	return *function ? (unsigned)(uint8_t)function[0] << 8 | (uint8_t)function[1] : 0;
}

static void note_beginning(const char *function)
{
	beginnings[beginning_of(function) >> 6] |= 1ull << (beginning_of(function) & 63);
}

static void note_beginnings(void)
{
	for (size_t i = 0; i < ARRAY_SIZE(RULES); i++)
		note_beginning(RULES[i].function);
	for (size_t i = 0; i < ARRAY_SIZE(WEAK); i++)
		note_beginning(WEAK[i].function);
}

static bool may_be_named(const char *function)
{
	pthread_once(&beginnings_once, note_beginnings);
	return beginnings[beginning_of(function) >> 6] >> (beginning_of(function) & 63) & 1;
}

const struct waitrule *waitrule_weak_of(const char *class, const char *function)
{
	for (size_t i = 0; may_be_named(function) && i < ARRAY_SIZE(WEAK); i++)
		if (!strcmp(WEAK[i].function, function) && !strcmp(WEAK[i].class, class))
			return &WEAK[i];
	return NULL;
}

const struct waitrule *waitrule_of(const char *class, const char *function)
{
	for (size_t i = 0; may_be_named(function) && i < ARRAY_SIZE(RULES); i++)
		if (!strcmp(RULES[i].function, function) &&
		    (!RULES[i].class || !strcmp(RULES[i].class, class)))
			return &RULES[i];
	return NULL;
}

bool waitrule_may(const char *class, const char *reason)
{
	bool may = !strcmp(class, reason);

	for (size_t i = 0; i < ARRAY_SIZE(RULES) && !may; i++)
		may = RULES[i].reason && !strcmp(RULES[i].reason, reason) &&
		      (!RULES[i].class || !strcmp(RULES[i].class, class));
	return may;
}

static const struct {
	const char *function, *purpose;
} PURPOSES[] = {
	/* PostgreSQL's log: written, brought to disk, or waited for while another writes it */
	{"XLogFlush", "WAL"},
	{"XLogWrite", "WAL"},
	{"XLogBackgroundFlush", "WAL"},
	{"issue_xlog_fsync", "WAL"},
};

const char *waitrule_purpose(const char *function)
{
	for (size_t i = 0; i < ARRAY_SIZE(PURPOSES); i++)
		if (!strcmp(PURPOSES[i].function, function))
			return PURPOSES[i].purpose;
	return NULL;
}

bool waitrule_names(const char *function)
{
	bool named = waitrule_purpose(function) != NULL;

	if (!may_be_named(function))
		return named;
	for (size_t i = 0; i < ARRAY_SIZE(RULES) && !named; i++)
		named = !strcmp(RULES[i].function, function);
	for (size_t i = 0; i < ARRAY_SIZE(WEAK) && !named; i++)
		named = !strcmp(WEAK[i].function, function);
	return named;
}

bool waitrule_idle_by_class(const char *class)
{
	return !strcmp(class, "poll");
}
