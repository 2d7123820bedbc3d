/* SPDX-License-Identifier: Apache-2.0 */
/*
 * itershim.so: for LD_PRELOAD. Simulates a kernel that refuses iterators: each iterator program
 * whose name is in ITERSHIM (words) fails to load, and each whose name is in ITERSHIM_LINK loads
 * and fails to attach: EPERM. PROGSHIM: the same as ITERSHIM, of any kind of program.
 */
#include <dlfcn.h>
#include <errno.h>
#include <linux/bpf.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>

static char loaded[1024][BPF_OBJ_NAME_LEN]; /* names by descriptor */

static int has_word(const char *words, const char *word)
{
	size_t n = strlen(word);

	for (const char *at = words; n && at && (at = strstr(at, word)); at += n)
		if ((at == words || at[-1] == ' ') && (!at[n] || at[n] == ' '))
			return 1;
	return 0;
}

static int refused(const long a[6])
{
	const union bpf_attr *attr = (const void *)a[1];

	if (a[0] == BPF_PROG_LOAD && has_word(getenv("PROGSHIM"), attr->prog_name))
		return 1;
	if (a[0] == BPF_PROG_LOAD && attr->prog_type == BPF_PROG_TYPE_TRACING &&
	    attr->expected_attach_type == BPF_TRACE_ITER)
		return has_word(getenv("ITERSHIM"), attr->prog_name);
	if (a[0] == BPF_LINK_CREATE && attr->link_create.attach_type == BPF_TRACE_ITER &&
	    attr->link_create.prog_fd < 1024)
		return has_word(getenv("ITERSHIM_LINK"), loaded[attr->link_create.prog_fd]);
	return 0;
}

long syscall(long number, ...)
{
	static long (*real)(long, ...);
	long a[6], got;
	va_list ap;

	va_start(ap, number);
	for (int i = 0; i < 6; i++)
		a[i] = va_arg(ap, long);
	va_end(ap);
	if (number == SYS_bpf && refused(a)) {
		errno = EPERM;
		return -1;
	}
	if (!real)
		real = (long (*)(long, ...))dlsym(RTLD_NEXT, "syscall");
	got = real(number, a[0], a[1], a[2], a[3], a[4], a[5]);
	if (number == SYS_bpf && a[0] == BPF_PROG_LOAD && got >= 0 && got < 1024)
		memcpy(loaded[got], ((const union bpf_attr *)a[1])->prog_name, BPF_OBJ_NAME_LEN);
	return got;
}
