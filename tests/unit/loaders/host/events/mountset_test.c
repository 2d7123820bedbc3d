/* SPDX-License-Identifier: Apache-2.0 */
/* mountset: what was mounted and unmounted between two looks. */
#include "loaders/host/events/mountset.h"

#include <stdio.h>
#include <string.h>

#include "tests/unit/test.h"

static void say(void *ctx, const struct mountset_one *x, bool mounted)
{
	char *out = ctx;

	sprintf(out + strlen(out), "%c%s,%s,%s ", mounted ? '+' : '-', x->point, x->source,
		x->type);
}

static void look(struct mountset *s, const char *points, char *out)
{
	char list[64], *rest = NULL;

	*out = 0;
	snprintf(list, sizeof(list), "%s", points);
	mountset_begin(s);
	for (const char *p = strtok_r(list, " ", &rest); p; p = strtok_r(NULL, " ", &rest))
		mountset_see(s, p, "sda1", "ext4", say, out);
	mountset_end(s, say, out);
}

TEST(what_was_there_at_the_first_look_is_not_told_and_later_changes_are)
{
	struct mountset s = {0};
	char out[256];

	look(&s, "/ /data", out);
	assert_string_equal(out, "");
	look(&s, "/ /data /mnt", out);
	assert_string_equal(out, "+/mnt,sda1,ext4 ");
	look(&s, "/mnt /", out);
	assert_string_equal(out, "-/data,sda1,ext4 ");
	look(&s, "/ /mnt", out);
	assert_string_equal(out, "");
	mountset_release(&s);
}

TEST(of_more_than_are_followed_none_is_called_new)
{
	struct mountset s = {0};
	char out[256] = "", point[16];

	for (int round = 0; round < 2; round++) {
		mountset_begin(&s);
		for (int i = round; i < MOUNTSET_MAX + 3; i++) {
			snprintf(point, sizeof(point), "/%d", i);
			mountset_see(&s, point, "sda1", "ext4", say, out);
		}
		mountset_end(&s, say, out);
	}
	assert_string_equal(out, "-/0,sda1,ext4 ");
	mountset_release(&s);
}
