/* SPDX-License-Identifier: Apache-2.0 */
#include "schema/store/archive/background.h"

#include <linux/ioprio.h>
#include <pthread.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

struct job {
	int (*work)(void *arg);
	void *arg;
	int rc;
};

static void *run(void *p)
{
	struct job *j = p;

	setpriority(PRIO_PROCESS, 0, 19); /* of this thread alone */
	syscall(SYS_ioprio_set, IOPRIO_WHO_PROCESS, 0, IOPRIO_PRIO_VALUE(IOPRIO_CLASS_IDLE, 0));
	j->rc = j->work(j->arg);
	return NULL;
}

int background_run(int (*work)(void *arg), void *arg)
{
	struct job j = {work, arg, 0};
	pthread_t t;

	if (pthread_create(&t, NULL, run, &j))
		return work(arg);
	pthread_join(t, NULL);
	return j.rc;
}
