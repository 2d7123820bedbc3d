/* SPDX-License-Identifier: Apache-2.0 */
#include "loaders/lib/bpf/load/leftout.h"

#include <bpf/libbpf.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "loaders/lib/bpf/start/check.h"
#include "schema/base/log.h"

#define MOST  24
#define STILL "_still"

static struct left {
	char name[64];
	const struct leftout_program *program; /* NULL: only this variant of it */
} left[MOST];
static size_t n_left;
static char last[64];

/* "libbpf: prog 'NAME': BPF program load failed: ..." */
void leftout_hear(const char *fmt, va_list ap)
{
	char text[256], *name, *end;
	va_list copy;

	if (!strstr(fmt, "prog '%s': ") || !strstr(fmt, "failed"))
		return;
	va_copy(copy, ap);
	vsnprintf(text, sizeof(text), fmt, copy);
	va_end(copy);
	name = strchr(text, '\'');
	end = name ? strchr(name + 1, '\'') : NULL;
	if (!end || end - name > (int)sizeof(last))
		return;
	snprintf(last, sizeof(last), "%.*s", (int)(end - name - 1), name + 1);
}

const char *leftout_last(void)
{
	return last;
}

/* Without "_still" at its end. */
static size_t plain_length(const char *name)
{
	size_t n = strlen(name), tail = strlen(STILL);

	return n > tail && !strcmp(name + n - tail, STILL) ? n - tail : n;
}

static struct bpf_program *program(struct bpf_object *obj, const char *name, const char *tail)
{
	char full[80];

	snprintf(full, sizeof(full), "%.*s%s", (int)plain_length(name), name, tail);
	return bpf_object__find_program_by_name(obj, full);
}

static void autoload_off(struct bpf_program *p)
{
	if (p)
		bpf_program__set_autoload(p, false);
}

void leftout_disable(struct bpf_object *obj)
{
	last[0] = '\0';
	for (size_t i = 0; i < n_left; i++) {
		struct bpf_program *still = program(obj, left[i].name, STILL),
				   *plain = program(obj, left[i].name, "");

		if (!left[i].program && still && plain && bpf_program__autoload(still))
			bpf_program__set_autoload(plain, true);
		autoload_off(still);
		if (left[i].program)
			autoload_off(plain);
	}
}

static const struct leftout_program *listed(const struct leftout_program *list, const char *name)
{
	size_t n = plain_length(name);

	for (; list && list->name; list++)
		if (strlen(list->name) == n && !strncmp(list->name, name, n))
			return list;
	return NULL;
}

static bool is_left(const char *name)
{
	for (size_t i = 0; i < n_left; i++)
		if (!strcmp(left[i].name, name))
			return true;
	return false;
}

static bool leave(const char *name, const struct leftout_program *of)
{
	if (n_left == MOST || is_left(name))
		return false;
	snprintf(left[n_left].name, sizeof(left[0].name), "%s", name);
	left[n_left++].program = of;
	return true;
}

void leftout_add(const struct leftout_program *list, const char *name)
{
	const struct leftout_program *p = listed(list, name);

	if (!p || leftout_is(p->name))
		return;
	leave(p->name, p);
	if (p->with)
		leftout_add(list, p->with);
}

bool leftout_next(const struct leftout_program *list, int err)
{
	bool variant = plain_length(last) < strlen(last);
	size_t before = n_left;

	if (!*last || err == -ENOMEM || err == -EMFILE || err == -ENFILE)
		return false;
	if (variant && !is_left(last))
		return leave(last, NULL);
	leftout_add(list, last);
	return n_left > before;
}

bool leftout_is(const char *name)
{
	for (size_t i = 0; i < n_left; i++)
		if (left[i].program && !strcmp(left[i].program->name, name))
			return true;
	return false;
}

static const char *costs(size_t i)
{
	return left[i].program ? left[i].program->costs : NULL;
}

/* Two programs may cost the same. */
static bool said_before(size_t i)
{
	for (size_t k = 0; k < i; k++)
		if (costs(k) && !strcmp(costs(k), costs(i)))
			return true;
	return false;
}

void leftout_tell(const char *family)
{
	for (size_t i = 0; i < n_left; i++)
		if (costs(i) && !said_before(i))
			log_warn("%s: the kernel refuses the program %s: %s", family,
				 left[i].program->name, costs(i));
}

void leftout_check(struct check *c)
{
	for (size_t i = 0; i < n_left; i++)
		if (costs(i) && !said_before(i))
			check_add(
				c, left[i].program->name, CHECK_WARN,
				"a kernel, and a security policy on it, that allow this program; -v shows what libbpf says",
				"the kernel refuses this program: %s", costs(i));
}
