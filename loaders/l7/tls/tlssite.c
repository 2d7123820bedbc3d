/* SPDX-License-Identifier: Apache-2.0 */
#include "loaders/l7/tls/tlssite.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <string.h>

#include "probes/l7.h"
#include "schema/image/format.h"

/* By the processor's number: the word in struct pt_regs (probes/lib/arch_x86.h). */
static const uint8_t PLACES[16] = {10, 11, 12, 5, 19, 4, 13, 14, 9, 8, 7, 6, 3, 2, 1, 0};

static uint16_t register_offset(uint8_t reg)
{
	return reg < 16 ? (uint16_t)(8 * PLACES[reg]) : TLS_NO_REG;
}

void tlssite_convert(const struct image_tls_site *from, struct tls_site *to)
{
	*to = (struct tls_site){.role = from->role,
				.dir = from->operation == IMAGE_TLS_READ ? L7_IN : L7_OUT,
				.result = from->result,
				.go = from->library == IMAGE_TLS_GO,
				.when = from->when,
				.condition = from->condition};
	for (unsigned i = 0; i < 4; i++)
		to->args[i] = register_offset(from->args[i]);
	for (unsigned i = 0; i < 2; i++) {
		to->check_reg[i] = register_offset(from->check_reg[i]);
		to->check_value[i] = from->check_value[i];
		to->value[i] = (struct tls_value){.place = from->value[i].place,
						  .bytes = from->value[i].bytes,
						  .reg = register_offset(from->value[i].reg),
						  .at = from->value[i].at};
	}
}
_Static_assert((int)IMAGE_TLS_LENGTH == (int)TLS_LENGTH &&
		       (int)IMAGE_TLS_POINTER == (int)TLS_POINTER &&
		       (int)IMAGE_TLS_PAIR == (int)TLS_PAIR &&
		       (int)IMAGE_TLS_RECORD == (int)TLS_RECORD,
	       "same numbers");
_Static_assert((int)IMAGE_TLS_SEAL_SCATTER == (int)TLS_SEAL_SCATTER &&
		       (int)IMAGE_TLS_SEAL == (int)TLS_SEAL &&
		       (int)IMAGE_TLS_OPEN == (int)TLS_OPEN &&
		       (int)IMAGE_TLS_OPEN_GATHER == (int)TLS_OPEN_GATHER &&
		       (int)IMAGE_TLS_RING == (int)TLS_RING,
	       "same numbers");
_Static_assert((int)IMAGE_TLS_REGISTER == (int)TLS_REGISTER &&
		       (int)IMAGE_TLS_STACK == (int)TLS_STACK &&
		       (int)IMAGE_TLS_NUMBER == (int)TLS_NUMBER,
	       "same numbers");
_Static_assert((int)IMAGE_TLS_ENTRY == (int)TLS_ENTRY && (int)IMAGE_TLS_RESULT == (int)TLS_RESULT &&
		       (int)IMAGE_TLS_FORGET == (int)TLS_FORGET,
	       "same numbers");
_Static_assert((int)IMAGE_TLS_TAKEN == (int)TLS_TAKEN &&
		       (int)IMAGE_TLS_NOT_TAKEN == (int)TLS_NOT_TAKEN,
	       "same numbers");

void tlssite_init(struct tlssite *t, struct bpf_object *obj)
{
	memset(t, 0, sizeof(*t));
	t->program = bpf_object__find_program_by_name(obj, "tls_site");
	t->sites = bpf_object__find_map_fd_by_name(obj, "tls_sites");
	t->places = bpf_object__find_map_fd_by_name(obj, "tls_places");
	t->cookies = libbpf_probe_bpf_helper(BPF_PROG_TYPE_KPROBE, BPF_FUNC_get_attach_cookie,
					     NULL) == 1;
}

static uint32_t number_take(struct tlssite *t)
{
	uint32_t n = 0;

	while (n < TLS_SITES && t->used[n])
		n++;
	return n;
}

/* Without cookies: two probes with the same place in their pages must do the same. */
static int place_take(struct tlssite *t, uint32_t place, uint32_t number,
		      const struct tls_site *site)
{
	uint32_t there = 0, mine = number + 1;
	struct tls_site other;

	if (!t->at_place[place])
		return bpf_map_update_elem(t->places, &place, &mine, BPF_ANY);
	if (bpf_map_lookup_elem(t->places, &place, &there) || !there)
		return -EIO;
	there--;
	if (bpf_map_lookup_elem(t->sites, &there, &other) || memcmp(&other, site, sizeof(other)))
		return -EEXIST;
	return 0;
}

int tlssite_attach(struct tlssite *t, const char *path, const struct image_tls_site *site,
		   struct tlssite_link *out)
{
	const uint32_t number = number_take(t), place = (uint32_t)site->offset & (TLS_PAGE - 1);
	struct tls_site s;
	struct tap tap;
	int err;

	if (number == TLS_SITES || !t->program)
		return -ENOSPC;
	tlssite_convert(site, &s);
	err = bpf_map_update_elem(t->sites, &number, &s, BPF_ANY);
	if (!err && !t->cookies)
		err = place_take(t, place, number, &s);
	if (err)
		return err;
	err = tap_uprobe(t->program, path, site->offset, 0, t->cookies ? number : 0, &tap);
	if (err)
		return err;
	t->used[number] = true;
	t->at_place[place]++;
	*out = (struct tlssite_link){.tap = tap, .number = number, .place = place};
	return 0;
}

void tlssite_detach(struct tlssite *t, struct tlssite_link *l, struct taps *to)
{
	const uint32_t none = 0;

	taps_add(to, l->tap);
	if (--t->at_place[l->place] == 0 && !t->cookies)
		bpf_map_update_elem(t->places, &l->place, &none, BPF_ANY);
	t->used[l->number] = t->at_place[l->place] &&
			     !t->cookies; /* one that does the same may still be found by it */
}
