/* SPDX-License-Identifier: Apache-2.0 */
#include "loaders/java/jguard.h"

#include <dirent.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "loaders/lib/host/proc/openin.h"
#include "loaders/lib/host/proc/proc.h"
#include "schema/base/array.h"
#include "schema/base/cleanup.h"

#define DISABLED  "+DisableAttachMechanism"
#define PERF_MAX  (1u << 20)
#define TEXT_MAX  (1u << 20)
#define PATH_MAX_ 600

static bool holds(const char *bytes, size_t len, const char *what)
{
	return bytes && memmem(bytes, len, what, strlen(what));
}

/* Is `path` the end of a line of maps? */
static bool maps_name(const char *maps, const char *name)
{
	const size_t n = strlen(name);

	for (const char *at = maps; (at = strstr(at, name)); at += n)
		if (at[n] == '\n' || at[n] == '\0' || at[n] == ' ')
			return true;
	return false;
}

bool jguard_is_hotspot(const char *maps)
{
	return maps && maps_name(maps, "/libjvm.so") && !strstr(maps, "/libj9vm");
}

static const char *line_of(const char *status, const char *name)
{
	const char *at = status ? strstr(status, name) : NULL;

	return at && (at == status || at[-1] == '\n') ? at + strlen(name) : NULL;
}

static bool catches_quit(const char *status)
{
	const char *at = line_of(status, "SigCgt:");

	return at && strtoull(at, NULL, 16) >> (SIGQUIT - 1) & 1;
}

static bool is_stopped(const char *status)
{
	const char *at = line_of(status, "State:");

	at = at ? at + strspn(at, " \t") : "";
	return *at == 'T' || *at == 't' || *at == 'Z' || *at == 'X' || !*at;
}

/* The variables whose text HotSpot, or its launcher, adds to the options. */
static bool in_variables(const struct jguard_seen *s, const char *what)
{
	static const char *const names[] = {
		"JAVA_TOOL_OPTIONS=", "JDK_JAVA_OPTIONS=", "_JAVA_OPTIONS="};
	const char *at = s->environment, *end = at ? at + s->environment_len : at;

	for (size_t n; at && at < end; at += n + 1) {
		n = strnlen(at, (size_t)(end - at));
		for (size_t i = 0; i < ARRAY_SIZE(names); i++)
			if (n > strlen(names[i]) && !memcmp(at, names[i], strlen(names[i])) &&
			    holds(at, n, what))
				return true;
	}
	return false;
}

/* Options that are in a file. */
static bool are_elsewhere(const struct jguard_seen *s)
{
	static const char *const words[] = {
		"-XX:Flags=", "-XX:VMOptionsFile=", "-XX:+ReadVMOptionsFile"};
	const char *at = s->cmdline, *end = at + s->cmdline_len;

	for (size_t n; at < end; at += n + 1) {
		n = strnlen(at, (size_t)(end - at));
		if (n && *at == '@')
			return true;
	}
	for (size_t i = 0; i < ARRAY_SIZE(words); i++)
		if (holds(s->cmdline, s->cmdline_len, words[i]) || in_variables(s, words[i]))
			return true;
	return in_variables(s, "@");
}

static bool perf_tells(const struct jguard_seen *s)
{
	return holds(s->perf, s->perf_len, "java.rt.vmArgs");
}

const char *jguard_refuses(const struct jguard_seen *s)
{
	if (!jguard_is_hotspot(s->maps))
		return "it is not a HotSpot Java virtual machine";
	if (!s->status || !s->cmdline || !s->environment)
		return "its options cannot be read: no CAP_SYS_PTRACE";
	if (holds(s->cmdline, s->cmdline_len, DISABLED) || in_variables(s, DISABLED) ||
	    holds(s->perf, s->perf_len, DISABLED))
		return "it was started with -XX:+DisableAttachMechanism";
	if (!perf_tells(s) && are_elsewhere(s))
		return "its options come from a file, and it has no performance data that says which: it might have disabled the attach mechanism";
	if (!catches_quit(s->status))
		return "it does not catch SIGQUIT (it has not begun yet, or was started with -Xrs)";
	if (!s->dispatcher)
		return "it has no thread Signal Dispatcher yet";
	if (is_stopped(s->status) || s->frozen)
		return "it is stopped";
	return NULL;
}

/* ---- reading ---- */

/* The kernel keeps 15 bytes of a name; from JDK 26 on the machine cuts a longer one in its midst.
 */
static bool is_dispatcher(const char *comm)
{
	return !strncmp(comm, "Signal Dispatch", 15) || !strncmp(comm, "Signal ..atcher", 15);
}

static bool has_dispatcher(uint32_t pid)
{
	char path[64], name[32];
	cleanup_dir DIR *d = NULL;
	const struct dirent *at;

	snprintf(path, sizeof(path), "/proc/%u/task", pid);
	d = opendir(path);
	while (d && (at = readdir(d))) {
		char file[400];
		cleanup_file FILE *f = NULL;

		snprintf(file, sizeof(file), "%s/%s/comm", path, at->d_name);
		f = at->d_name[0] == '.' ? NULL : fopen(file, "re");
		if (f && fgets(name, sizeof(name), f) && is_dispatcher(name))
			return true;
	}
	return false;
}

/* Of cgroup v2; where it cannot be read it is not known to be. */
static bool is_frozen(uint32_t pid)
{
	cleanup_free char *text = NULL;
	char path[PATH_MAX_], line[64];
	cleanup_file FILE *f = NULL;
	struct proc_cgroup cg;
	size_t len;

	if (proc_read(pid, "cgroup", 65536, &text, &len) || proc_parse_cgroup(text, len, &cg) ||
	    !cg.v2 ||
	    snprintf(path, sizeof(path), "/sys/fs/cgroup%.*s/cgroup.events", (int)cg.v2_len,
		     cg.v2) >= (int)sizeof(path))
		return false;
	f = fopen(path, "re");
	while (f && fgets(line, sizeof(line), f))
		if (!strcmp(line, "frozen 1\n"))
			return true;
	return false;
}

/* The file that it has mapped as .../hsperfdata_USER/NSPID. */
static void perf_read(uint32_t pid, uint32_t nspid, const char *maps, char **out, size_t *len)
{
	const char *name = strstr(maps, "/hsperfdata_"), *begin = name;
	cleanup_fd int root = -1, fd = -1;
	char path[PATH_MAX_], end[24];
	struct stat st;
	size_t n;

	*out = NULL;
	*len = 0;
	if (!name)
		return;
	while (begin > maps && begin[-1] != '\n' && begin[-1] != ' ')
		begin--;
	n = strcspn(begin, "\n ");
	snprintf(end, sizeof(end), "/%u", nspid);
	if (n >= sizeof(path) || n < strlen(end) ||
	    memcmp(begin + n - strlen(end), end, strlen(end)) != 0)
		return;
	memcpy(path, begin, n);
	path[n] = '\0';
	root = openin_root(pid);
	fd = root < 0 ? root : openin_no_link(root, path, PERF_MAX, &st);
	if (fd >= 0 && openin_read(fd, (size_t)st.st_size, out, len))
		*out = NULL;
}

const char *jguard_process(uint32_t pid, uint32_t nspid)
{
	cleanup_free char *status = NULL, *maps = NULL, *cmdline = NULL, *environment = NULL,
			  *perf = NULL;
	struct jguard_seen s = {0};
	size_t len;

	if (proc_read(pid, "status", TEXT_MAX, &status, &len) ||
	    proc_read(pid, "maps", PROC_FILE_MAX, &maps, &len))
		return "it has ended, or cannot be read";
	if (!proc_read(pid, "cmdline", TEXT_MAX, &cmdline, &len))
		s.cmdline_len = len;
	if (!proc_read(pid, "environ", TEXT_MAX, &environment, &len))
		s.environment_len = len;
	perf_read(pid, nspid, maps, &perf, &s.perf_len);
	s.status = status;
	s.maps = maps;
	s.cmdline = cmdline;
	s.environment = environment;
	s.perf = perf;
	s.dispatcher = has_dispatcher(pid);
	s.frozen = is_frozen(pid);
	return jguard_refuses(&s);
}
