/* SPDX-License-Identifier: Apache-2.0 */
#include "loaders/java/jtalk.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "loaders/java/agentjar.h"
#include "loaders/java/jattach.h"
#include "loaders/java/jcmd.h"
#include "loaders/java/jguard.h"
#include "loaders/java/onrecord.h"
#include "schema/base/cleanup.h"
#include "schema/base/clock.h"

#define LINE     1200
#define TRIES    3
#define TAKEN_NS (10 * NSEC_PER_SEC) /* family l7 looks each second at the latest */

struct talk {
	const struct jtalk_job *job;
	struct jattach at;
	struct jhelper_told *told;
	char answer[JCMD_ANSWER_MAX], line[LINE];
};

static int refuse(struct talk *t, int rc, const char *why)
{
	snprintf(t->told->why, sizeof(t->told->why), "%s", why);
	return rc;
}

/* What the machine said, cut to a line. */
static int refuse_said(struct talk *t, const char *what)
{
	const char *text = jcmd_text(t->answer);
	char said[90];

	jcmd_line(text ? text : t->answer, said, sizeof(said));
	snprintf(t->told->why, sizeof(t->told->why), "%s: %s", what, *said ? said : "no answer");
	return -EPROTO;
}

static int ask(struct talk *t, const char *line)
{
	const int rc = jattach_ask(&t->at, line, t->answer);

	return rc ? refuse(t, rc, t->at.why) : 0;
}

/* How many recordings named sonde there are; *id: one of them. */
static int recordings(struct talk *t, uint32_t *id, int *n)
{
	const char *text;
	int rc = ask(t, "JFR.check");

	if (rc)
		return rc;
	text = jcmd_text(t->answer);
	*n = text ? jcmd_recordings(text, id) : -1;
	if (*n < 0)
		return refuse_said(t, "it has no Java Flight Recorder");
	t->told->others = 0;
	for (const char *at = text; (at = strstr(at, "Recording")); at++)
		t->told->others += at == text || at[-1] == '\n';
	t->told->others -= (uint32_t)*n < t->told->others ? (uint32_t)*n : t->told->others;
	return 0;
}

/* The recording of this number, if it is named sonde. Sure only when it is no longer listed. */
static int stop(struct talk *t, uint32_t recording)
{
	uint32_t id;
	int n = 0, rc = 0;

	for (int i = 0; i < TRIES; i++) {
		rc = recordings(t, &id, &n);
		if (rc || !n || (recording && n == 1 && id != recording))
			return rc;
		snprintf(t->line, sizeof(t->line), "JFR.stop name=%u", recording ? recording : id);
		rc = ask(t, t->line);
		if (rc)
			return rc;
	}
	rc = recordings(t, &id, &n);
	return rc || !n ? rc : refuse_said(t, "it does not stop the recording");
}

/* ---- files in the machine's /tmp ---- */

static void file_name(char *out, size_t size, const char *end)
{
	uint64_t x = 0;

	if (getrandom(&x, sizeof(x), 0) != sizeof(x))
		x = (uint64_t)getpid();
	snprintf(out, size, ".sonde-%016llx.%s", (unsigned long long)x, end);
}

/* What it recorded since the last dump, and up to two minutes before. */
static int dump(struct talk *t, uint32_t recording, int *out)
{
	char name[64];
	struct stat st;
	cleanup_fd int fd = -1;
	int rc;

	file_name(name, sizeof(name), "jfr");
	snprintf(t->line, sizeof(t->line), "JFR.dump name=%u filename=/tmp/%s", recording, name);
	rc = ask(t, t->line);
	if (rc) {
		(void)unlinkat(t->at.tmp, name, 0);
		return rc;
	}
	fd = openat(t->at.tmp, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	if (fd < 0 || fstat(fd, &st) || !S_ISREG(st.st_mode))
		return refuse_said(t, "it wrote no file");
	(void)unlinkat(t->at.tmp, name, 0);
	*out = take_fd(&fd);
	return 0;
}

/* An old machine reads its settings from a file, at once. */
static int settings_make(struct talk *t, const struct jcmd_wish *w, char name[64])
{
	char text[4096];
	const size_t len = jcmd_settings(w, text, sizeof(text));
	cleanup_fd int fd = -1;

	file_name(name, 64, "jfc");
	fd = openat(t->at.tmp, name, O_CREAT | O_EXCL | O_WRONLY | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (fd < 0 || !len || write(fd, text, len) != (ssize_t)len) {
		if (fd >= 0)
			(void)unlinkat(t->at.tmp, name, 0);
		return refuse(t, -EACCES, "its /tmp cannot be written by its user");
	}
	return 0;
}

static int start(struct talk *t)
{
	struct jcmd_wish w = {.major = t->told->major,
			      .no_exceptions = t->job->ask.no_exceptions != 0};
	char name[64] = "", path[80];
	const char *text;
	int rc = 0;

	if (w.major < JCMD_LIVE_SINCE)
		rc = settings_make(t, &w, name);
	if (rc)
		return rc;
	snprintf(path, sizeof(path), "/tmp/%s", name);
	w.settings = path;
	rc = jcmd_start_line(&w, t->line, sizeof(t->line));
	if (!rc && onrecord_begin(t->job->kept, "1"))
		rc = refuse(t, -EIO, "cannot note that it is recorded");
	else
		rc = rc ? refuse(t, rc, "the command is too long") : ask(t, t->line);
	if (*name)
		(void)unlinkat(t->at.tmp, name, 0);
	if (rc)
		return rc;
	text = jcmd_text(t->answer);
	t->told->recording = text ? jcmd_started(text) : 0;
	return t->told->recording ? 0 : refuse_said(t, "it does not record");
}

static int version(struct talk *t)
{
	const char *text, *at;
	int rc = ask(t, "VM.version");

	if (rc)
		return rc;
	text = jcmd_text(t->answer);
	t->told->major = text ? jcmd_major(text) : 0;
	at = text ? jcmd_version(text) : NULL;
	if (!at || !t->told->major)
		return refuse_said(t, "its version is not known");
	jcmd_line(at, t->told->version, sizeof(t->told->version));
	return 0;
}

static int begin(struct talk *t)
{
	uint32_t id;
	int n = 0, rc = version(t);

	if (!rc)
		rc = recordings(t, &id, &n);
	if (!rc && n && t->job->left)
		rc = stop(t, 0);
	else if (!rc && n)
		rc = refuse(
			t, -EEXIST,
			"a recording named sonde runs there already: of another sonde, or jcmd PID JFR.stop name=sonde ends it");
	return rc ? rc : start(t);
}

static int end(struct talk *t, int *fd)
{
	const struct jtalk_job *j = t->job;

	/* what cannot be dumped is stopped all the same */
	if (j->recording && j->major && j->major < JCMD_LIVE_SINCE)
		(void)dump(t, j->recording, fd);
	t->told->why[0] = '\0';
	return stop(t, j->recording);
}

/* ---- the agent that shows the clear text of TLS ---- */

/* A file in its /tmp that its user alone can read. */
static int file_put(struct talk *t, const char *name, const void *data, size_t size)
{
	cleanup_fd int fd =
		openat(t->at.tmp, name, O_CREAT | O_EXCL | O_WRONLY | O_NOFOLLOW | O_CLOEXEC, 0600);
	const char *from = data;
	ssize_t n = 0;

	while (fd >= 0 && size && (n = write(fd, from, size)) > 0) {
		from += n;
		size -= (size_t)n;
	}
	return fd < 0 || size ? -EACCES : 0;
}

/* What the agent wrote of how it went. */
static int said_read(struct talk *t, const char *name)
{
	cleanup_fd int fd = openat(t->at.tmp, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	char text[200], line[90];
	const ssize_t n = fd < 0 ? -1 : read(fd, text, sizeof(text) - 1);

	if (n <= 0)
		return refuse_said(t, "its agent does not begin");
	text[n] = '\0';
	if (!strcmp(text, "ok"))
		return 0;
	jcmd_line(text, line, sizeof(line));
	snprintf(t->told->why, sizeof(t->told->why), "its agent: %s", line);
	return -EPROTO;
}

/* Java reads the jar while it loads it; the files go at once. */
static int agent(struct talk *t, const char *word, const char *secret)
{
	char jar[64], said[64];
	int rc;

	file_name(jar, sizeof(jar), "jar");
	file_name(said, sizeof(said), "said");
	rc = file_put(t, jar, AGENTJAR, agentjar_size());
	rc = rc ? rc : file_put(t, said, NULL, 0);
	if (rc)
		rc = refuse(t, rc, "its /tmp cannot be written by its user");
	snprintf(t->line, sizeof(t->line), "/tmp/%s=%s /tmp/%s %s /tmp/%s", jar, word, said, secret,
		 jar);
	if (!rc) {
		rc = jattach_load(&t->at, t->line, t->answer);
		rc = rc ? refuse(t, rc, t->at.why) : said_read(t, said);
	}
	(void)unlinkat(t->at.tmp, jar, 0);
	(void)unlinkat(t->at.tmp, said, 0);
	return rc;
}

/* Family l7 has read the record, and believes the agent from its first word on. */
static bool is_taken(int kept)
{
	const int64_t until = clock_boot_ns() + TAKEN_NS;
	char mark = 0;

	while (pread(kept, &mark, 1, ONRECORD_TAKEN_AT) != 1 && clock_boot_ns() < until)
		nanosleep(&(struct timespec){.tv_nsec = 20000000}, NULL);
	return mark == ONRECORD_TAKEN;
}

static int tls_begin(struct talk *t)
{
	char text[ONRECORD_TAKEN_AT + 1], secret[17];
	uint64_t x = 0;
	int rc = agentjar_size() ?
			 version(t) :
			 refuse(t, -ENOTSUP, "sonde was built without a JDK, and has no agent");

	if (rc)
		return rc;
	if (getrandom(&x, sizeof(x), 0) != sizeof(x) || !x)
		return refuse(t, -EIO, "there is no random number");
	snprintf(secret, sizeof(secret), "%016llx", (unsigned long long)x);
	snprintf(text, sizeof(text), "1 %s ", secret);
	if (onrecord_begin(t->job->kept, text))
		return refuse(t, -EIO, "cannot note that it has an agent");
	if (!is_taken(t->job->kept)) {
		onrecord_unbegin(t->job->kept);
		return refuse(t, -EAGAIN, "family l7, which would read it, does not record");
	}
	rc = agent(t, "on", secret);
	t->told->recording = !rc;
	return rc;
}

static int run(struct talk *t, int *fd)
{
	const struct jtalk_job *j = t->job;
	const char *refused = NULL;
	int rc = jattach_open(&t->at, j->ask.pid, j->ask.start_ticks);

	/* what was read as root is judged before the rights are gone */
	if (!rc)
		refused = jguard_process(j->ask.pid, t->at.of.nspid);
	if (!rc)
		rc = jattach_become(&t->at);
	if (!rc && jattach_listens(&t->at))
		rc = refused ? refuse(t, -EPERM, refused) : jattach_ready(&t->at);
	if (rc)
		return *t->told->why ? rc : refuse(t, rc, t->at.why);
	if (j->tls)
		return j->ask.what == JHELPER_START ? tls_begin(t) : agent(t, "off", "-");
	return j->ask.what == JHELPER_START ? begin(t) :
	       j->ask.what == JHELPER_DUMP  ? dump(t, j->recording, fd) :
					      end(t, fd);
}

void jtalk(const struct jtalk_job *job, struct jhelper_told *told, int *fd)
{
	static struct talk t; /* it is large, and the process is for this alone */

	*fd = -1;
	*told = (struct jhelper_told){.what = job->ask.what,
				      .pid = job->ask.pid,
				      .start_ticks = job->ask.start_ticks,
				      .recording = job->recording,
				      .major = job->major};
	t = (struct talk){.job = job, .told = told};
	told->status = run(&t, fd);
}
