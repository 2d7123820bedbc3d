/* SPDX-License-Identifier: Apache-2.0 */
/* capture: see the header. */
#include "loaders/replay/capture.h"

#include <errno.h>
#include <pcap/pcap.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "loaders/replay/packet.h"
#include "schema/base/clock.h"
#include "schema/base/mem.h"

#define MAGIC_BYTES 4

struct capture {
	pcap_t *pcap; /* NULL: pcapng */
	FILE *file;   /* pcapng's; libpcap closes its own */
	struct pcapng *ng;
	uint8_t *block;
	size_t cap;
	char why[160];
};

static int refuse(struct err *e, const char *path, const char *why)
{
	err_set(e, -EIO, EXIT_USAGE, "%.300s is not read as a capture: %.200s", path, why);
	err_fix(e, "tcpdump -i any -w x.pcap makes one (pcap or pcapng)");
	return -EIO;
}

const char *capture_link_name(int link)
{
	const char *name = pcap_datalink_val_to_name(link);

	return name ? name : "unknown";
}

/* Does the file begin as pcapng does? What was read is there again. */
static bool is_pcapng(FILE *f)
{
	uint8_t first[MAGIC_BYTES];
	size_t n = fread(first, 1, sizeof(first), f);
	bool is = n == sizeof(first) && first[0] == 0x0a && first[1] == 0x0d && first[2] == 0x0d &&
		  first[3] == 0x0a;

	while (n && ungetc(first[n - 1], f) != EOF)
		n--;
	return is;
}

static int open_pcap(struct capture *c, const char *path, FILE *f, struct err *e)
{
	char why[PCAP_ERRBUF_SIZE] = "";

	c->pcap = pcap_fopen_offline_with_tstamp_precision(f, PCAP_TSTAMP_PRECISION_NANO, why);
	if (!c->pcap) {
		fclose(f);
		return refuse(e, path, why);
	}
	if (packet_link_known(pcap_datalink(c->pcap)))
		return 0;
	return err_set(e, -ENOTSUP, EXIT_USAGE,
		       "%.300s is a capture of %s packets; read are " PACKET_LINKS, path,
		       capture_link_name(pcap_datalink(c->pcap)));
}

int capture_open(const char *path, struct capture **out, struct err *e)
{
	FILE *f = strcmp(path, "-") ? fopen(path, "re") : stdin;
	struct capture *c;
	int rc = 0;

	if (!f)
		return refuse(e, path, strerror(errno));
	c = mem_alloc(sizeof(*c));
	if (is_pcapng(f)) {
		c->file = f;
		c->ng = pcapng_new();
	} else {
		rc = open_pcap(c, path, f, e);
	}
	if (rc)
		capture_close(c);
	else
		*out = c;
	return rc;
}

static int fail(struct capture *c, const char *why)
{
	snprintf(c->why, sizeof(c->why), "%s", why);
	return -EIO;
}

/* 1: a block of *size bytes; 0: the end. */
static int next_block(struct capture *c, size_t *size)
{
	uint8_t head[PCAPNG_HEAD];
	size_t n = fread(head, 1, sizeof(head), c->file);

	if (!n && !ferror(c->file))
		return 0;
	if (n < sizeof(head))
		return fail(c, ferror(c->file) ? strerror(errno) :
						 "truncated pcapng file: it ends within a block");
	*size = pcapng_size(c->ng, head);
	if (!*size)
		return fail(c, "no block of pcapng begins where one should");
	if (*size > c->cap) {
		c->cap = *size;
		c->block = mem_realloc(c->block, c->cap);
	}
	memcpy(c->block, head, sizeof(head));
	if (fread(c->block + sizeof(head), 1, *size - sizeof(head), c->file) < *size - sizeof(head))
		return fail(c, ferror(c->file) ? strerror(errno) :
						 "truncated pcapng file: it ends within a block");
	return 1;
}

static int next_pcapng(struct capture *c, struct pcapng_packet *out)
{
	size_t size;
	int rc;

	while ((rc = next_block(c, &size)) == 1) {
		rc = pcapng_block(c->ng, c->block, size, out);
		if (rc < 0)
			return fail(c, "a block of pcapng makes no sense");
		if (rc)
			return rc;
	}
	return rc;
}

int capture_next(struct capture *c, struct pcapng_packet *out)
{
	struct pcap_pkthdr *head;
	const u_char *bytes;
	int got;

	if (c->ng)
		return next_pcapng(c, out);
	got = pcap_next_ex(c->pcap, &head, &bytes);
	if (got != 1)
		return got == PCAP_ERROR ? fail(c, pcap_geterr(c->pcap)) : 0;
	*out = (struct pcapng_packet){.link = pcap_datalink(c->pcap),
				      .at_ns = head->ts.tv_sec * NSEC_PER_SEC +
					       head->ts.tv_usec, /* ns, as asked for */
				      .bytes = bytes,
				      .len = head->caplen,
				      .size = head->len};
	return 1;
}

const char *capture_why(const struct capture *c)
{
	return c->why;
}

void capture_close(struct capture *c)
{
	if (!c)
		return;
	if (c->pcap)
		pcap_close(c->pcap);
	if (c->file && c->file != stdin)
		fclose(c->file);
	pcapng_free(c->ng);
	free(c->block);
	free(c);
}
