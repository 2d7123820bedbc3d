/* SPDX-License-Identifier: Apache-2.0 */
#include "loaders/pstack/thread.h"

#include <arpa/inet.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include "loaders/lib/host/proc/container.h"
#include "loaders/lib/host/proc/containernames.h"
#include "loaders/lib/host/proc/proc.h"
#include "loaders/lib/host/proc/syscalls.h"
#include "loaders/pstack/wait_fds.h"
#include "schema/base/cleanup.h"
#include "schema/base/mem.h"
#include "schema/base/strbuf.h"

/* The kernel's task states, which /proc/PID/stat shows as letters; the same since 4.14 */
#define STATE_INTERRUPTIBLE   0x0001u
#define STATE_UNINTERRUPTIBLE 0x0002u
#define STATE_STOPPED         0x0004u
#define STATE_TRACED          0x0008u
#define STATE_EXITED          0x0030u /* exit_state is kept elsewhere; these are its values */
#define STATE_DEAD            0x0080u
#define STATE_NOLOAD          0x0400u

static const char *state_name(const struct pstack_record *r)
{
	uint32_t s = r->state;

	if (r->flags & PSTACK_ON_CPU)
		return "running";
	if (!s)
		return "ready";
	if (s & (STATE_DEAD | STATE_EXITED))
		return "ended";
	if (s & STATE_STOPPED)
		return "stopped";
	if (s & STATE_TRACED)
		return "traced";
	if (s & STATE_INTERRUPTIBLE)
		return "sleeping";
	if (s & STATE_UNINTERRUPTIBLE)
		return s & STATE_NOLOAD ? "idle" : "uninterruptible";
	return "blocked";
}

bool thread_is_blocked(const struct pstack_record *r)
{
	return r->state && !(r->flags & PSTACK_ON_CPU) && !(r->state & (STATE_DEAD | STATE_EXITED));
}

static enum syscall_wait wait_of(const struct pstack_record *r)
{
	enum syscall_wait w = syscall_wait(r->syscall);
	char path[64];
	struct stat st;

	if (w != SYSCALL_BY_FILE)
		return w;
	snprintf(path, sizeof(path), "/proc/%u/fd/%d", r->tid, (int)r->regs[5]); /* rdi */
	return stat(path, &st) ? SYSCALL_OTHER : syscall_wait_of_mode(st.st_mode);
}

/* In the order of what is surest, as the off-CPU family tells it. */
static const char *reason(const struct pstack_record *r)
{
	enum syscall_wait w;

	if (!thread_is_blocked(r))
		return NULL;
	if (r->state & (STATE_STOPPED | STATE_TRACED))
		return "stop";
	if ((r->flags & PSTACK_REGS) && !(r->flags & (PSTACK_IN_SYSCALL | PSTACK_32BIT)))
		return "page fault";
	w = r->flags & PSTACK_IN_SYSCALL ? wait_of(r) : SYSCALL_OTHER;
	return r->flags & PSTACK_IOWAIT && w != SYSCALL_POLL ? "disk" : syscall_wait_name(w);
}

static char *wchan(const struct pstack_record *r)
{
	char path[64], line[128] = "";
	size_t n;

	snprintf(path, sizeof(path), "/proc/%u/wchan", r->tid);
	cleanup_file FILE *f = fopen(path, "re");
	n = f ? fread(line, 1, sizeof(line) - 1, f) : 0;
	line[n] = '\0';
	return n && strcmp(line, "0") ? mem_strdup(line) : NULL;
}

static char *container_of_cgroup(const char *cgroup)
{
	struct container_ref ref;
	struct container_names names = {0};
	char *name;

	if (!cgroup || !container_parse(cgroup, strlen(cgroup), &ref))
		return NULL;
	if (containernames_find(containernames_docker_root(), "", &ref, &names))
		names = (struct container_names){0};
	name = names.name ? mem_strdup(names.name) :
			    mem_strndup(ref.id, strlen(ref.id) == 64 ? 12 : strlen(ref.id));
	container_names_release(&names);
	return name;
}

static char *process_name(const struct pstack_record *r, const struct hostmaps_process *p)
{
	struct proc_stat st;

	if (p && p->comm[0])
		return mem_strdup(p->comm);
	return mem_strdup(proc_read_stat(r->tgid, &st) ? r->thread : st.comm);
}

/* Is the first argument of the system call that it sleeps in a descriptor? */
static bool has_descriptor(const struct pstack_record *r)
{
	enum syscall_wait w = syscall_wait(r->syscall);

	return (r->flags & PSTACK_IN_SYSCALL) && (w == SYSCALL_BY_FILE || w == SYSCALL_NETWORK);
}

/* "10.0.0.5:5432", "[::1]:80", "port 80" of one that has no other end, a Unix socket's
 * "/run/x.sock" or "@x". */
static char *socket_text(const struct sock_end *s)
{
	struct strbuf b cleanup_strbuf = STRBUF_INIT;
	char address[INET6_ADDRSTRLEN] = "";

	if (s->family == AF_UNIX) {
		if (!s->path_len || s->path_len > sizeof(s->path))
			return mem_strdup("a Unix socket without a path");
		strbuf_add(&b, s->path[0] ? "" : "@", !s->path[0]);
		strbuf_add(&b, (const char *)s->path + !s->path[0],
			   s->path[0] ? strnlen((const char *)s->path, s->path_len) :
					s->path_len - 1);
		return strbuf_take(&b);
	}
	if (!s->port) {
		strbuf_addf(&b, "port %u", s->lport);
		return strbuf_take(&b);
	}
	inet_ntop(s->family, s->peer, address, sizeof(address));
	strbuf_addf(&b, s->family == AF_INET6 ? "[%s]:%u" : "%s:%u", address, s->port);
	return strbuf_take(&b);
}

/* "postgres 812" */
static char *mate_text(uint32_t pid)
{
	struct strbuf b cleanup_strbuf = STRBUF_INIT;
	struct proc_stat st;

	if (!pid || proc_read_stat(pid, &st))
		return NULL;
	strbuf_addf(&b, "%s %u", st.comm, pid);
	return strbuf_take(&b);
}

void thread_fill(struct thread *t, const struct pstack_record *r, const struct hostmaps_process *p,
		 uint64_t now_ns)
{
	t->pid = r->tgid;
	t->tid = r->tid;
	t->name = mem_strndup(r->thread, strnlen(r->thread, sizeof(r->thread)));
	t->process = process_name(r, p);
	t->container = p ? container_of_cgroup(p->cgroup) : NULL;
	t->state = state_name(r);
	t->reason = reason(r);
	t->syscall = r->flags & PSTACK_IN_SYSCALL ? syscall_name(r->syscall) : NULL;
	t->wchan = thread_is_blocked(r) ? wchan(r) : NULL;
	if (thread_is_blocked(r) && r->sock.family && has_descriptor(r)) {
		t->on = socket_text(&r->sock);
		t->peer = mate_text(r->sock.mate);
	}
	t->since_ns = (int64_t)r->left_ns;
	t->blocked_ns = r->left_ns ? (int64_t)(now_ns > r->left_ns ? now_ns - r->left_ns : 0) : -1;
}

/* One that is neither bound nor connected says nothing. */
static bool has_end(const struct sock_end *s)
{
	return s->family == AF_UNIX ? s->path_len || s->mate : s->family && (s->port || s->lport);
}

void thread_watches(struct thread *t, const struct pstack_record *r, const struct sockets *all)
{
	struct wait_fds fds;

	if (!thread_is_blocked(r) || !wait_fds_is_one(r))
		return;
	wait_fds_read(r, &fds);
	for (size_t i = 0; i < fds.n; i++) {
		const struct pstack_socket *s = sockets_find(all, r->tgid, fds.rows[i].fd);

		/* another file has that number now */
		if (!s || !has_end(&s->sock) || (fds.rows[i].ino && fds.rows[i].ino != s->ino))
			continue;
		if (t->n_watches == THREAD_WATCHES) {
			t->more_watches++;
			continue;
		}
		t->watches[t->n_watches].on = socket_text(&s->sock);
		t->watches[t->n_watches++].peer = mate_text(s->sock.mate);
	}
	wait_fds_release(&fds);
}

void thread_release(struct thread *t)
{
	for (size_t i = 0; i < t->n_watches; i++) {
		free(t->watches[i].on);
		free(t->watches[i].peer);
	}
	free(t->process);
	free(t->name);
	free(t->container);
	free(t->wchan);
	free(t->on);
	free(t->peer);
	named_stack_release(&t->stack);
}
