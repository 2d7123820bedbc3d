/* SPDX-License-Identifier: Apache-2.0 */
#include "loaders/host/logs/journallines.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "loaders/lib/host/journal/journalfile.h"
#include "schema/base/array.h"
#include "schema/base/cleanup.h"
#include "schema/base/mem.h"

#define ENTRIES        64   /* that are read of one container: lines of 16 KiB come in pieces */
#define FOLDERS_MAX    16   /* machines whose journals are in one place */
#define LOOKED_AT      4096 /* names in a folder */
#define PLACE_NAME_MAX 48

static const char *const hosts[] = {"", "/proc/1/root"}; /* the host, as seen from a container */
static const char *const folders[] = {"/var/log/journal", "/run/log/journal"};
#define N_HOSTS   ARRAY_SIZE(hosts)
#define N_FOLDERS ARRAY_SIZE(folders)

/* One that is read from, and which of its entries are the container's. */
struct source {
	int fd;
	int64_t written_ns;
	struct journalfile file;
	uint64_t at[ENTRIES];
	size_t n;
};

struct sources {
	struct source all[JOURNALLINES_FILES]; /* the newest ones, in no order */
	size_t n;
	uint32_t owner;
};

/* ---- files ---- */

static bool from_file(void *ctx, void *out, size_t len, uint64_t at)
{
	const struct source *s = ctx;

	return at < (uint64_t)INT64_MAX - len && pread(s->fd, out, len, (off_t)at) == (ssize_t)len;
}

/* system.journal, system@....journal; user-1000.journal, user-1000@....journal */
static bool is_wanted(const char *name, uint32_t owner)
{
	const char *dot = strrchr(name, '.');
	char user[20];
	size_t n;

	snprintf(user, sizeof(user), "user-%u", owner);
	n = !strncmp(name, "system", 6)                 ? 6 :
	    owner && !strncmp(name, user, strlen(user)) ? strlen(user) :
							  0;
	return n && dot && !strcmp(dot, ".journal") && (name[n] == '.' || name[n] == '@');
}

static struct source *oldest(struct sources *s)
{
	struct source *old = &s->all[0];

	for (size_t i = 1; i < s->n; i++)
		if (s->all[i].written_ns < old->written_ns)
			old = &s->all[i];
	return old;
}

/* Takes the descriptor. */
static void file_take(struct sources *s, int fd, const struct stat *st)
{
	struct source x = {.fd = fd,
			   .written_ns = st->st_mtim.tv_sec * 1000000000ll + st->st_mtim.tv_nsec};
	struct source *to = s->n < JOURNALLINES_FILES ? &s->all[s->n++] : oldest(s);

	if (to->fd > 0 && to->written_ns >= x.written_ns) {
		close(fd);
		return;
	}
	if (to->fd > 0)
		close(to->fd);
	*to = x;
}

static void folder_look(struct sources *s, int at, const char *name)
{
	int fd = openat(at, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW), file;
	DIR *d = fd < 0 ? NULL : fdopendir(fd);
	struct dirent *e;
	struct stat st;

	if (!d && fd >= 0)
		close(fd);
	for (int i = 0; d && i < LOOKED_AT && (e = readdir(d)); i++) {
		if (!is_wanted(e->d_name, s->owner))
			continue;
		file = openat(fd, e->d_name,
			      O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY);
		if (file < 0)
			continue;
		if (!fstat(file, &st) && S_ISREG(st.st_mode))
			file_take(s, file, &st);
		else
			close(file);
	}
	if (d)
		closedir(d);
}

static bool is_machine(const char *name)
{
	return strspn(name, "0123456789abcdef") == 32 && !name[32];
}

static void place_look(struct sources *s, const char place[PLACE_NAME_MAX])
{
	DIR *d = opendir(place);
	struct dirent *e;
	int n = 0;

	while (d && n < FOLDERS_MAX && (e = readdir(d))) {
		if (!is_machine(e->d_name))
			continue;
		folder_look(s, dirfd(d), e->d_name);
		n++;
	}
	if (d)
		closedir(d);
}

static const char *place_name(size_t i, char buf[PLACE_NAME_MAX])
{
	snprintf(buf, PLACE_NAME_MAX, "%s%s", hosts[i / N_FOLDERS], folders[i % N_FOLDERS]);
	return buf;
}

/* Of both folders of the first host that has any. */
static void sources_look(struct sources *s)
{
	char place[PLACE_NAME_MAX];

	for (size_t i = 0; i < N_HOSTS * N_FOLDERS && (!s->n || i % N_FOLDERS); i++)
		place_look(s, place_name(i, place));
}

const char *journallines_folder(void)
{
	static char place[PLACE_NAME_MAX];
	struct sources s = {.n = 0};

	for (size_t i = 0; i < N_HOSTS * N_FOLDERS && !s.n; i++)
		place_look(&s, place_name(i, place));
	for (size_t f = 0; f < s.n; f++)
		close(s.all[f].fd);
	return s.n ? place : NULL;
}

/* ---- lines ---- */

static int later_first(const void *a, const void *b)
{
	const struct source *x = a, *y = b;

	return (x->written_ns < y->written_ns) - (x->written_ns > y->written_ns);
}

static void entry_take(struct containerlog_joint *j, const struct journalfile_entry *e)
{
	static const char packed[] = "(a long line, with unsupported compression)";
	int stream = e->priority >= 0 && e->priority <= 3 ?
			     CONTAINERLOG_ERR :
			     CONTAINERLOG_OUT; /* as both runtimes say it */

	if (e->unread)
		containerlog_piece(j, stream, packed, sizeof(packed) - 1, true);
	else
		containerlog_piece(j, stream, e->message, e->len, !e->partial);
}

static void source_read(struct containerlog_joint *j, struct source *s, uint32_t owner)
{
	struct journalfile_entry *e = mem_alloc(sizeof(*e));

	for (size_t i = 0; i < s->n; i++)
		if (journalfile_entry(&s->file, s->at[i], e) && e->uid == owner)
			entry_take(j, e);
	free(e);
}

void journallines_read(struct containerlog *log, const struct container_ref *ref, int64_t until_ns)
{
	struct sources *s = mem_alloc(sizeof(*s));
	struct containerlog_joint j = {.l = log};
	char field[32 + CONTAINER_ID_MAX];
	size_t n = 0, looked = 0;

	*s = (struct sources){.owner = ref->owner};
	snprintf(field, sizeof(field), "CONTAINER_ID_FULL=%.64s", ref->id);
	sources_look(s);
	qsort(s->all, s->n, sizeof(s->all[0]), later_first);
	for (; looked < s->n && n < ENTRIES; looked++) {
		struct source *x = &s->all[looked];

		x->file = (struct journalfile){.read = from_file, .ctx = x};
		x->n = journalfile_begin(&x->file) ?
			       journalfile_find(&x->file, field, until_ns, x->at, ENTRIES - n) :
			       0;
		n += x->n;
	}
	while (looked--)
		source_read(&j, &s->all[looked], ref->owner);
	containerlog_end(&j);
	for (size_t i = 0; i < s->n; i++)
		close(s->all[i].fd);
	free(s);
}
