/* SPDX-License-Identifier: Apache-2.0 */
#include "loaders/java/javatls.h"

#include <errno.h>
#include <stdio.h>

#include "schema/base/clock.h"
#include "schema/base/log.h"

#define RETRY_NS (5 * NSEC_PER_SEC)
#define RETRIES  12

static bool ask(const struct jhelper *helper, enum jhelper_what what, uint32_t pid,
		uint64_t start_ticks)
{
	const struct jhelper_ask q = {.what = what, .pid = pid, .start_ticks = start_ticks};

	return !jhelper_send(helper, &q);
}

void javatls_begin(struct javatls *t, const struct jhelper *helper, uint32_t pid,
		   uint64_t start_ticks, int64_t now_ns)
{
	if (t->state != JAVATLS_NONE || t->refused || now_ns < t->next_ns)
		return;
	if (!t->tries)
		log_warn(
			"java %u: an agent is loaded into it, to read its TLS; JDK 21 and newer print a warning of four lines about that to its standard error, now and when it ends",
			pid);
	if (ask(helper, JHELPER_START, pid, start_ticks))
		t->state = JAVATLS_ASKED;
	else
		t->next_ns = now_ns + RETRY_NS;
}

bool javatls_end(struct javatls *t, const struct jhelper *helper, uint32_t pid,
		 uint64_t start_ticks)
{
	if ((t->state != JAVATLS_ON && t->state != JAVATLS_ASKED) ||
	    !ask(helper, JHELPER_STOP, pid, start_ticks))
		return false;
	t->state = JAVATLS_ENDING;
	return true;
}

void javatls_gone(struct javatls *t, const struct jhelper *helper, uint32_t pid,
		  uint64_t start_ticks)
{
	if (t->state == JAVATLS_NONE || t->state == JAVATLS_ENDED)
		return;
	t->state = JAVATLS_ENDED;
	(void)ask(helper, JHELPER_FORGET, pid, start_ticks);
}

/* What may pass: it has not begun, is stopped, or family l7 has not. */
static bool may_pass(const struct jhelper_told *told)
{
	return told->status == -EPERM || told->status == -EAGAIN || told->status == -ECHILD;
}

static void begun(struct javatls *t, const struct jhelper_told *told, int64_t now_ns)
{
	if (!told->status) {
		t->state = JAVATLS_ON;
		t->why[0] = '\0';
		log_warn(
			"java %u (JDK %s): the requests inside its TLS are read; when that has ended, its process keeps five classes (10 KB) and two entries in its class path until it ends",
			told->pid, told->version);
		return;
	}
	snprintf(t->why, sizeof(t->why), "%s", told->why);
	t->state = JAVATLS_NONE;
	t->next_ns = now_ns + RETRY_NS;
	if (may_pass(told) && ++t->tries <= RETRIES)
		return;
	t->refused = true;
	log_warn("java %u: its TLS is not read: %s", told->pid, t->why);
}

void javatls_told(struct javatls *t, const struct jhelper_told *told, int64_t now_ns)
{
	if (told->what == JHELPER_START && t->state == JAVATLS_ASKED)
		begun(t, told, now_ns);
	else if (told->what == JHELPER_STOP && t->state == JAVATLS_ENDING) {
		t->state = JAVATLS_ENDED;
		if (told->status)
			log_warn("java %u: its agent does not end: %s", told->pid, told->why);
	}
}
