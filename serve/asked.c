/* SPDX-License-Identifier: Apache-2.0 */
#include "serve/asked.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "schema/base/mem.h"
#include "schema/base/strbuf.h"

struct asked_one {
	struct asked_one *next;
	struct strbuf question; /* the words of the request, each ended by a NUL */
	unsigned users;
	bool over;
	int rc;
	struct child_answer answer;
	struct err e;
};

void asked_init(struct asked *a)
{
	*a = (struct asked){0};
	pthread_mutex_init(&a->lock, NULL);
	pthread_cond_init(&a->done, NULL);
}

void asked_release(struct asked *a)
{
	pthread_cond_destroy(&a->done);
	pthread_mutex_destroy(&a->lock);
}

static void words_of(const char *const *argv, struct strbuf *out)
{
	for (; *argv; argv++)
		strbuf_add(out, *argv, strlen(*argv) + 1);
}

struct asked_one *asked_enter(struct asked *a, const char *const *argv, bool *own)
{
	struct strbuf question = STRBUF_INIT;
	struct asked_one *x;

	words_of(argv, &question);
	pthread_mutex_lock(&a->lock);
	for (x = a->first; x; x = x->next)
		if (x->question.len == question.len &&
		    !memcmp(x->question.buf, question.buf, question.len))
			break;
	*own = !x;
	if (!x) {
		x = mem_alloc(sizeof(*x));
		*x = (struct asked_one){
			.next = a->first, .question = question, .answer.out_fd = -1};
		question = (struct strbuf)STRBUF_INIT;
		a->first = x;
	}
	x->users++;
	pthread_mutex_unlock(&a->lock);
	strbuf_release(&question);
	return x;
}

void asked_done(struct asked *a, struct asked_one *x, int rc, const struct child_answer *answer,
		const struct err *e)
{
	pthread_mutex_lock(&a->lock);
	x->over = true;
	x->rc = rc;
	x->answer = *answer;
	x->answer.out_fd =
		answer->out_fd < 0 || x->users < 2 ? -1 : fcntl(answer->out_fd, F_DUPFD_CLOEXEC, 0);
	x->e = *e;
	for (struct asked_one **at = &a->first; *at; at = &(*at)->next)
		if (*at == x) {
			*at = x->next;
			break;
		}
	pthread_cond_broadcast(&a->done);
	pthread_mutex_unlock(&a->lock);
}

int asked_wait(struct asked *a, struct asked_one *x, struct child_answer *answer, struct err *e)
{
	int rc;

	pthread_mutex_lock(&a->lock);
	while (!x->over)
		pthread_cond_wait(&a->done, &a->lock);
	rc = x->rc;
	*answer = x->answer;
	*e = x->e;
	if (!rc) {
		answer->out_fd = fcntl(x->answer.out_fd, F_DUPFD_CLOEXEC, 0);
		if (answer->out_fd < 0)
			rc = err_set(e, -errno, EXIT_RUNTIME, "cannot share an answer: %s",
				     strerror(errno));
	}
	pthread_mutex_unlock(&a->lock);
	return rc;
}

void asked_leave(struct asked *a, struct asked_one *x)
{
	bool last;

	pthread_mutex_lock(&a->lock);
	last = !--x->users;
	pthread_mutex_unlock(&a->lock);
	if (!last)
		return;
	if (x->answer.out_fd >= 0)
		close(x->answer.out_fd);
	strbuf_release(&x->question);
	free(x);
}
