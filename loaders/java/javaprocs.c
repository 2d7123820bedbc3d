/* SPDX-License-Identifier: Apache-2.0 */
#include "loaders/java/javaprocs.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include <uthash.h>

#include "loaders/java/chunkfile.h"
#include "loaders/java/javastore.h"
#include "loaders/java/javatls.h"
#include "loaders/java/jcmd.h"
#include "loaders/lib/bpf/start/target.h"
#include "loaders/lib/host/maps/hostmaps.h"
#include "loaders/lib/host/names/naming.h"
#include "loaders/lib/host/proc/proc.h"
#include "schema/base/cleanup.h"
#include "schema/base/clock.h"
#include "schema/base/log.h"
#include "schema/base/mem.h"
#include "schema/store/write/writer.h"

#define LOOK_NS         (NSEC_PER_SEC * 2 / 5)
#define SOON_NS         (NSEC_PER_SEC / 5)
#define YOUNG_NS        (3 * NSEC_PER_SEC) /* it is left alone for that long */
#define LOOK_LATER_NS   (60 * NSEC_PER_SEC)
#define RETRY_NS        (5 * NSEC_PER_SEC)
#define RETRIES         12   /* of what may pass: it has not begun, or is stopped */
#define EXCEPTIONS_MOST 2000 /* a second */
#define TIDS_NS         (5 * NSEC_PER_SEC)

enum state { NEW, ASKED, RECORDS, DUMPING, STOPPING, ENDED, REFUSED };

struct javaproc_key {
	uint64_t start_ns;
	uint32_t tgid, exec_id;
};

struct javaproc {
	struct javaproc_key key;
	enum state state;
	bool is_java, gone, no_exceptions, last; /* last: nothing is asked after this reading */
	int64_t seen_ns, look_ns, next_ns, read_ns, tids_ns;
	unsigned int tries;
	uint32_t major;
	uint64_t left_out;
	char version[64], why[JHELPER_WHY];
	struct chunkfile chunk, newer; /* newer: follows once `chunk` has been read to its end */
	bool finished;                 /* `chunk` gets no more */
	int dump;                      /* the file of a dump; -1: none */
	int64_t dumped_chunk_ns;       /* chunks that began until then have been read */
	struct subreader_job job;
	struct java_samples samples;
	struct idmap tids;
	struct javatls tls;
	enum javatls_state tls_told;
	uint64_t told; /* store_gauge_epoch + 1 of the notes */
	UT_hash_handle hh;
};

struct javaprocs {
	struct javaprocs_opts o;
	struct javaproc *all;
	int64_t look_ns, now_ns;
	uint64_t read_cpu_ns;
	bool helper_gone;
	struct family_host *host;
};

struct javaprocs *javaprocs_new(const struct javaprocs_opts *o)
{
	struct javaprocs *js = mem_alloc(sizeof(*js));

	*js = (struct javaprocs){.o = *o};
	return js;
}

static void drop(struct javaprocs *js, struct javaproc *p)
{
	HASH_DEL(js->all, p);
	subreader_drop(&p->job);
	chunkfile_close(&p->chunk);
	chunkfile_close(&p->newer);
	if (p->dump >= 0)
		close(p->dump);
	idmap_release(&p->samples.threads);
	idmap_release(&p->tids);
	free(p);
}

void javaprocs_free(struct javaprocs *js)
{
	struct javaproc *p, *next;

	if (!js)
		return;
	HASH_ITER (hh, js->all, p, next)
		drop(js, p);
	free(js);
}

uint64_t javaprocs_read_ns(const struct javaprocs *js)
{
	return js->read_cpu_ns;
}

/* ---- which processes ---- */

static struct hostmaps_process *process_of(const struct javaprocs *js, const struct javaproc *p)
{
	return hostmaps_process(js->host->maps, p->key.tgid, p->key.start_ns, p->key.exec_id);
}

static struct javaproc *add(struct javaprocs *js, const struct javaproc_key *key)
{
	struct javaproc *p = mem_alloc(sizeof(*p));

	*p = (struct javaproc){.key = *key,
			       .chunk = CHUNKFILE_NONE,
			       .newer = CHUNKFILE_NONE,
			       .dump = -1,
			       .job = {.said = -1, .out = -1},
			       .next_ns = js->now_ns};
	HASH_ADD(hh, js->all, key, sizeof(p->key), p);
	return p;
}

static bool is_chosen(const struct javaprocs *js, struct hostmaps_process *hp)
{
	return target_covers(js->host->target, js->host->maps, hp) &&
	       (!js->o.choose || naming_fits(js->host->naming, hp, js->o.choose)) &&
	       !naming_excludes(js->host->naming, hp);
}

static void look_at(void *ctx, struct hostmaps_process *hp)
{
	struct javaprocs *js = ctx;
	struct javaproc_key key = {
		.start_ns = hp->start_ns, .tgid = hp->tgid, .exec_id = hp->exec_id};
	const int64_t age = js->now_ns - (int64_t)hp->start_ns;
	struct javaproc *p;

	HASH_FIND(hh, js->all, &key, sizeof(key), p);
	if (!p)
		p = add(js, &key);
	p->seen_ns = js->now_ns;
	if (p->is_java || age < YOUNG_NS || js->now_ns < p->look_ns)
		return;
	p->is_java = hostmaps_has_file(hp, "libjvm.so");
	p->look_ns = js->now_ns + (age < LOOK_LATER_NS ? YOUNG_NS : LOOK_LATER_NS);
}

static void look(struct javaprocs *js)
{
	struct javaproc *p, *next;

	if (js->now_ns < js->look_ns)
		return;
	js->look_ns = js->now_ns + LOOK_NS;
	hostmaps_each(js->host->maps, look_at, js);
	HASH_ITER (hh, js->all, p, next)
		p->gone = p->seen_ns != js->now_ns;
}

/* ---- notes ---- */

static void mode_write(const struct javaprocs *js, const struct javaproc *p, char *out, size_t size)
{
	const char *how = !p->major                  ? "" :
			  p->major < JCMD_LIVE_SINCE ? "by dumps" :
			  p->no_exceptions           ? "without exceptions" :
						       "";
	const bool tls = p->tls.state == JAVATLS_ON || p->tls.state >= JAVATLS_ENDING;

	snprintf(out, size, "%s%s%s", how, tls && *how ? ", " : "",
		 !tls           ? "" :
		 js->o.tls_only ? "TLS alone" :
				  "TLS");
}

static void tell_state(struct javaprocs *js, struct javaproc *p)
{
	static const char *const words[] = {
		[NEW] = "not recorded",    [ASKED] = "asked",       [RECORDS] = "recorded",
		[DUMPING] = "recorded",    [STOPPING] = "recorded", [ENDED] = "recorded",
		[REFUSED] = "not recorded"};
	const uint64_t segment = store_gauge_epoch(js->host->store) + 1;
	const bool tls_on = js->o.tls_only && p->tls.state > JAVATLS_ASKED;
	struct hostmaps_process *hp = process_of(js, p);
	char mode[48], why[2 * JHELPER_WHY + 8];
	const struct java_state s = {.state = tls_on ? "recorded" : words[p->state],
				     .reason = why,
				     .version = p->version,
				     .mode = mode,
				     .left_out = p->left_out,
				     .waits_left_out = p->samples.log_left_out};

	if (!hp || (p->told == segment && p->tls_told == p->tls.state) ||
	    (p->state == NEW && !p->why[0] && !p->tls.why[0] && !tls_on))
		return;
	mode_write(js, p, mode, sizeof(mode));
	snprintf(why, sizeof(why), "%s%s%s%s", p->why, p->why[0] && p->tls.why[0] ? "; " : "",
		 p->tls.why[0] ? "TLS: " : "", p->tls.why);
	javastore_state(js->host, hp, &s);
	store_flush(js->host->store); /* where nothing else is stored */
	p->told = segment;
	p->tls_told = p->tls.state;
}

static void refuse(struct javaproc *p, const char *why)
{
	snprintf(p->why, sizeof(p->why), "%s", why);
	p->state = REFUSED;
	p->told = 0;
	log_warn("java %u is not recorded: %s", p->key.tgid, p->why);
}

/* What may pass: it has not begun yet, or is stopped at the moment. */
static bool may_pass(const struct jhelper_told *told)
{
	return told->status == -EPERM || told->status == -EAGAIN || told->status == -ECHILD;
}

/* ---- the helper ---- */

static bool ask(struct javaprocs *js, struct javaproc *p, enum jhelper_what what)
{
	const struct jhelper_ask q = {.what = what,
				      .pid = p->key.tgid,
				      .start_ticks = p->key.start_ns / proc_ticks_ns(1),
				      .no_exceptions = p->no_exceptions};

	return !jhelper_send(js->o.helper, &q);
}

static struct javaproc *find(struct javaprocs *js, const struct jhelper_told *told)
{
	struct javaproc *p = js->all;

	while (p && (p->key.tgid != told->pid ||
		     p->key.start_ns / proc_ticks_ns(1) != told->start_ticks || p->state == NEW ||
		     p->state == REFUSED))
		p = p->hh.next;
	return p;
}

static void began(struct javaprocs *js, struct javaproc *p, const struct jhelper_told *told)
{
	const bool again = p->samples.begun_ns != 0;

	p->state = RECORDS;
	p->major = told->major;
	p->told = 0;
	p->next_ns = js->now_ns + js->o.interval_ns;
	p->read_ns = js->now_ns;
	p->finished = false;
	snprintf(p->version, sizeof(p->version), "%s", told->version);
	p->why[0] = '\0';
	if (again)
		return;
	p->samples.begun_ns = clock_utc_ns();
	js->host->processes++;
	log_warn(
		"java %u (JDK %s) is recorded; when that has ended, its process keeps four threads, 17 to 49 MB of memory, /tmp/.java_pid%u and an empty folder in /tmp until it ends",
		p->key.tgid, p->version,
		process_of(js, p) ? process_of(js, p)->nspid : p->key.tgid);
}

static void start_failed(struct javaprocs *js, struct javaproc *p, const struct jhelper_told *told)
{
	if (!may_pass(told) || ++p->tries > RETRIES) {
		refuse(p, told->why);
		return;
	}
	snprintf(p->why, sizeof(p->why), "%s", told->why);
	p->state = NEW;
	p->told = 0;
	p->next_ns = js->now_ns + RETRY_NS;
}

static void told_one(struct javaprocs *js, struct javaproc *p, const struct jhelper_told *told,
		     int *fd)
{
	if (*fd >= 0 && p->dump < 0 && (p->state == DUMPING || p->state == STOPPING))
		p->dump = take_fd(fd);
	if (told->what == JHELPER_START && p->state == ASKED) {
		if (told->status)
			start_failed(js, p, told);
		else
			began(js, p, told);
	} else if (told->what == JHELPER_DUMP && p->state == DUMPING) {
		p->state = RECORDS;
		if (told->status)
			log_warn("java %u: no dump: %s", p->key.tgid, told->why);
	} else if (told->what == JHELPER_STOP && p->state == STOPPING) {
		if (told->status && !p->gone)
			log_warn("java %u: the recording does not stop: %s", p->key.tgid,
				 told->why);
		p->finished = true;
		p->state = p->no_exceptions && !p->last ? ASKED : ENDED;
		if (p->state == ASKED && !ask(js, p, JHELPER_START))
			p->state = ENDED;
	}
}

static void tls_read(struct javaprocs *js)
{
	struct jhelper_told told;
	struct javaproc *p;
	int fd;

	while (js->o.tls && jhelper_take(js->o.tls, &told, &fd) > 0) {
		if (fd >= 0)
			close(fd);
		for (p = js->all; p; p = p->hh.next)
			if (p->key.tgid == told.pid &&
			    p->key.start_ns / proc_ticks_ns(1) == told.start_ticks)
				break;
		if (!p)
			continue;
		if (!told.status && !p->version[0])
			snprintf(p->version, sizeof(p->version), "%s", told.version);
		if (p->tls.state == JAVATLS_ASKED && !told.status && js->o.tls_only)
			js->host->processes++;
		javatls_told(&p->tls, &told, js->now_ns);
	}
}

static void helper_read(struct javaprocs *js)
{
	struct jhelper_told told;
	int fd, rc;

	tls_read(js);
	while ((rc = jhelper_take(js->o.helper, &told, &fd)) > 0) {
		struct javaproc *p = find(js, &told);

		if (p)
			told_one(js, p, &told, &fd);
		if (fd >= 0)
			close(fd);
	}
	if (rc < 0 && !js->helper_gone) {
		js->helper_gone = true;
		log_warn(
			"the process sonde-jvm has ended: recordings of Java programs go on until sonde-java is started again");
	}
}

/* ---- reading ---- */

/* Its threads' numbers here, by those in its own pid namespace. */
static void tids_read(struct javaprocs *js, struct javaproc *p, const struct hostmaps_process *hp)
{
	char path[64];
	cleanup_dir DIR *d = NULL;
	const struct dirent *at;

	if (hp->nspid == hp->tgid || js->now_ns < p->tids_ns)
		return;
	p->tids_ns = js->now_ns + TIDS_NS;
	snprintf(path, sizeof(path), "/proc/%u/task", hp->tgid);
	d = opendir(path);
	while (d && (at = readdir(d))) {
		cleanup_free char *text = NULL;
		struct proc_status st;
		char name[300];
		size_t len;

		snprintf(name, sizeof(name), "task/%s/status", at->d_name);
		if (at->d_name[0] != '.' && !proc_read(hp->tgid, name, 8192, &text, &len) &&
		    !proc_parse_status(text, len, &st))
			idmap_set(&p->tids, st.nspid, (uint64_t)atoi(at->d_name));
	}
}

/* The rest of a chunk that the machine has finished is read before the newer one. */
static void chunk_follow(struct javaproc *p)
{
	if (p->chunk.fd < 0) {
		(void)chunkfile_find(p->key.tgid, &p->chunk);
		return;
	}
	if (p->finished || p->newer.fd >= 0 || chunkfile_is_current(p->key.tgid, &p->chunk))
		return;
	if (chunkfile_find(p->key.tgid, &p->newer))
		return;
	if (p->newer.ino == p->chunk.ino && p->newer.dev == p->chunk.dev) {
		p->chunk.theirs = p->newer.theirs;
		chunkfile_close(&p->newer);
	}
}

static bool read_begin(struct javaprocs *js, struct javaproc *p)
{
	const bool live = p->major >= JCMD_LIVE_SINCE;
	const struct jfrpick_opts o = {
		.live = live, .since = p->chunk.read, .after_chunk_ns = p->dumped_chunk_ns};
	int fd;

	if (p->job.said >= 0)
		return true;
	if (live)
		chunk_follow(p);
	fd = live ? p->chunk.fd : p->dump;
	return fd >= 0 && !jfrread_ask(js->o.reader, fd, &o, &p->job);
}

/* Too many exceptions: another recording, without them. */
static void exceptions_watch(struct javaprocs *js, struct javaproc *p, uint64_t exceptions)
{
	const int64_t s = (js->now_ns - p->read_ns) / NSEC_PER_SEC + 1;

	if (p->no_exceptions || p->state != RECORDS ||
	    exceptions <= (uint64_t)(EXCEPTIONS_MOST * s))
		return;
	p->no_exceptions = true;
	log_warn("java %u makes more than %d exceptions a second: they are recorded no longer",
		 p->key.tgid, EXCEPTIONS_MOST);
	if (ask(js, p, JHELPER_STOP))
		p->state = STOPPING;
}

static void block_take(struct javaprocs *js, struct javaproc *p, const struct jfrblock *b)
{
	struct hostmaps_process *hp = process_of(js, p);
	struct java_target t = {
		.h = js->host, .process = hp, .samples = &p->samples, .tids = &p->tids};

	js->read_cpu_ns += b->head->cpu_ns < 60 * (uint64_t)NSEC_PER_SEC ? b->head->cpu_ns : 0;
	p->left_out += b->head->left_out < UINT32_MAX ? b->head->left_out : 0;
	if (b->head->left_out)
		store_loss(js->host->store, js->host->run, clock_utc_ns(), "java",
			   b->head->left_out < UINT32_MAX ? b->head->left_out : UINT32_MAX);
	if (!hp)
		return;
	tids_read(js, p, hp);
	javastore_block(&t, b);
	exceptions_watch(js, p, t.exceptions);
	p->read_ns = js->now_ns;
}

/* What was read is the whole of a chunk that gets no more: the newer one is next. */
static void chunk_advance(struct javaproc *p, const struct jfrblock *b)
{
	if (p->major < JCMD_LIVE_SINCE) {
		p->dumped_chunk_ns = b->head->chunk_ns;
		close(take_fd(&p->dump));
		return;
	}
	p->chunk.read = b->head->end > p->chunk.read ? b->head->end : p->chunk.read;
	if (p->newer.fd >= 0) {
		chunkfile_close(&p->chunk);
		p->chunk = p->newer;
		p->newer = CHUNKFILE_NONE;
		p->next_ns = 0;
	}
}

/* true: a reading has ended. */
static bool read_end(struct javaprocs *js, struct javaproc *p, int wait_ms)
{
	struct jfrblock b;
	void *bytes = NULL;
	int rc;

	if (p->job.said < 0)
		return true;
	rc = jfrread_take(&p->job, wait_ms, &bytes, &b);
	if (rc == -EINPROGRESS)
		return false;
	if (!rc) {
		block_take(js, p, &b);
		chunk_advance(p, &b);
	} else if (rc != -EAGAIN) {
		log_warn("java %u: what it recorded cannot be read: %s", p->key.tgid,
			 strerror(-rc));
		if (p->dump >= 0)
			close(take_fd(&p->dump));
	}
	free(bytes);
	return true;
}

/* ---- its life ---- */

static void begin_one(struct javaprocs *js, struct javaproc *p)
{
	struct hostmaps_process *hp = process_of(js, p);

	if (!hp || !p->is_java || js->now_ns < p->next_ns || js->o.tls_only)
		return;
	if (!is_chosen(js, hp)) {
		p->next_ns = js->now_ns + RETRY_NS; /* its container's name may come later */
		return;
	}
	if (ask(js, p, JHELPER_START))
		p->state = ASKED;
	else
		p->next_ns = js->now_ns + RETRY_NS;
}

static void record_one(struct javaprocs *js, struct javaproc *p)
{
	if (!read_end(js, p, 0) || js->now_ns < p->next_ns)
		return;
	p->next_ns = js->now_ns + js->o.interval_ns;
	if (p->major < JCMD_LIVE_SINCE && p->dump < 0 && ask(js, p, JHELPER_DUMP))
		p->state = DUMPING;
	else
		(void)read_begin(js, p);
}

/* After the recording has begun: two conversations with a machine that has just begun take it
 * longer. */
static void tls_one(struct javaprocs *js, struct javaproc *p)
{
	struct hostmaps_process *hp = process_of(js, p);

	if (js->o.tls && hp && p->is_java && p->tls.state == JAVATLS_NONE &&
	    (js->o.tls_only || (p->state != NEW && p->state != ASKED)) && is_chosen(js, hp))
		javatls_begin(&p->tls, js->o.tls, p->key.tgid, p->key.start_ns / proc_ticks_ns(1),
			      js->now_ns);
}

static void one(struct javaprocs *js, struct javaproc *p)
{
	tls_one(js, p);
	switch (p->state) {
	case NEW:
		begin_one(js, p);
		break;
	case RECORDS:
		if (p->dump >= 0 && read_begin(js, p))
			(void)read_end(js, p, 0);
		else
			record_one(js, p);
		break;
	case STOPPING:
	case ASKED:
	case DUMPING:
	case ENDED:
	case REFUSED:
		(void)read_end(js, p, 0);
		break;
	}
	tell_state(js, p);
}

/* It has ended: what its last chunk has is still there, through our descriptor. */
static void ended(struct javaprocs *js, struct javaproc *p)
{
	if (js->o.tls)
		javatls_gone(&p->tls, js->o.tls, p->key.tgid, p->key.start_ns / proc_ticks_ns(1));
	if (p->state == RECORDS || p->state == DUMPING) {
		p->state = ENDED;
		p->last = p->finished = true;
		p->next_ns = js->now_ns;
		(void)ask(js, p, JHELPER_FORGET);
		if (read_end(js, p, 0) && p->chunk.fd >= 0)
			(void)read_begin(js, p);
		return;
	}
	if (read_end(js, p, 0))
		drop(js, p);
}

void javaprocs_poll(struct javaprocs *js, struct family_host *h, int64_t now_ns)
{
	struct javaproc *p, *next;

	js->host = h;
	js->now_ns = now_ns;
	look(js);
	helper_read(js);
	HASH_ITER (hh, js->all, p, next) {
		if (p->gone)
			ended(js, p);
		else
			one(js, p);
	}
	h->next_ns = now_ns + SOON_NS;
}

/* ---- the end ---- */

static void stop_all(struct javaprocs *js)
{
	for (struct javaproc *p = js->all; p; p = p->hh.next) {
		p->last = true;
		if (js->o.tls && !p->gone)
			(void)javatls_end(&p->tls, js->o.tls, p->key.tgid,
					  p->key.start_ns / proc_ticks_ns(1));
		if ((p->state == RECORDS || p->state == DUMPING || p->state == ASKED) && !p->gone &&
		    ask(js, p, JHELPER_STOP))
			p->state = STOPPING;
	}
}

static bool stops(const struct javaprocs *js)
{
	for (const struct javaproc *p = js->all; p; p = p->hh.next)
		if ((p->state == STOPPING && !js->helper_gone) || p->tls.state == JAVATLS_ENDING)
			return true;
	return false;
}

/* To the end of all chunks that there are. */
static void read_last(struct javaprocs *js, struct javaproc *p, int64_t until_ns)
{
	for (int i = 0; i < 4 && clock_boot_ns() < until_ns; i++) {
		const bool more = p->newer.fd >= 0;

		while (!read_end(js, p, 20) && clock_boot_ns() < until_ns)
			;
		if ((i > 1 && !more) || !read_begin(js, p))
			break;
	}
	while (!read_end(js, p, 20) && clock_boot_ns() < until_ns)
		;
}

void javaprocs_finish(struct javaprocs *js, struct family_host *h, int64_t until_ns)
{
	js->host = h;
	js->now_ns = clock_boot_ns();
	helper_read(js);
	/* so that its descriptor stays readable when the machine has closed it */
	for (struct javaproc *p = js->all; p; p = p->hh.next)
		if (p->state == RECORDS && p->major >= JCMD_LIVE_SINCE)
			chunk_follow(p);
	stop_all(js);
	while (stops(js) && clock_boot_ns() < until_ns) {
		nanosleep(&(struct timespec){.tv_nsec = 5000000}, NULL);
		helper_read(js);
	}
	for (struct javaproc *p = js->all; p; p = p->hh.next) {
		if (p->state == ENDED || p->state == STOPPING)
			read_last(js, p, until_ns);
		if (p->state == STOPPING || p->job.said >= 0)
			log_warn(
				"java %u: its recording is being stopped; what it recorded last is not stored: there was no time to read it",
				p->key.tgid);
		tell_state(js, p);
	}
}
