/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * disk_pages: which files requests read and write, and who made their pages dirty.
 *
 * 1. A request's bios hold pages. A page of the page cache says of which file it is, whatever the
 *    file system: also in writeback, and of a file that is deleted already. One that belongs to a
 *    device (its inode is S_IFBLK) is metadata of a file system, or was written by the device's own
 *    file.
 * 2. Other pages (swap, metadata of xfs and btrfs, what dm-crypt ciphered) name no file: they are
 *    summed as file 0, so that all files together are all requests.
 * 3. Of one request DISK_BIOS bios are looked at; what is beyond them counts for the last one's
 *    file, as requests are merged where files are contiguous on the disk.
 * 4. Dirty: the kernel tells when a page of a file that was as on the disk is changed, where the
 *    change is made, once until it is written. A folio of several pages counts as a whole.
 * 5. Names are read by one of the inode's dentries, up to DISK_DEEP parts, when a sum is made.
 * 6. O_DIRECT, by system calls, libaio or io_uring: the pages are the program's. What ext4, xfs and
 *    most others make of it has iomap's own function to end it, and with it the open file.
 */
#ifndef SONDE_PROBES_DISK_PAGES_BPF_H
#define SONDE_PROBES_DISK_PAGES_BPF_H

#include "probes/lib/kern.h"

#include <bpf/bpf_core_read.h>
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_tracing.h>

#include "probes/disk/files.bpf.h"
#include "probes/disk/sums.bpf.h"
#include "probes/lib/preempt.bpf.h"

#define PAGE_NOT_A_FILES 3 /* bits of page.mapping: anonymous, or movable by a driver */
#define S_IFMT           0170000
#define S_IFREG          0100000
#define S_IFBLK          0060000
#define MAGIC_TMPFS      0x01021994
#define MAGIC_HUGETLBFS  0x958458f6
#define DISK_BIOS        8

enum pageflags {
	PG_head = 6, /* each kernel's own, by CO-RE */
};

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)

struct super_block___pages {
	__u32 s_dev;
	unsigned long s_magic, s_iflags;
};

struct inode___pages {
	unsigned short i_mode;
	unsigned long i_ino;
	__u32 i_rdev;
	unsigned int i_nlink;
	unsigned char i_blkbits;
	__u64 i_blocks;
	struct super_block___pages *i_sb;
	struct hlist_head i_dentry;
};

struct address_space {
	struct inode___pages *host;
};

struct page {
	unsigned long compound_head;
	struct address_space *mapping;
};

struct page___7 { /* the same under another name, see page_head */
	unsigned long compound_info;
};

struct folio {
	struct address_space *mapping;
	unsigned long _flags_1;
};

struct folio___6_1 {
	unsigned char _folio_order;
};

struct dentry___union {
	union {
		struct hlist_node d_alias;
	} d_u;
};

struct dentry___7_1 { /* its union has no name */
	struct hlist_node d_alias;
};

struct bvec_iter {
	__u64 bi_sector;
	unsigned int bi_size, bi_idx;
};

struct bio {
	struct bio *bi_next;
	struct bvec_iter bi_iter;
	struct bio_vec *bi_io_vec;
	void *bi_end_io, *bi_private;
	struct block_device *bi_bdev;
	unsigned int bi_opf;
	__u8 bi_status;
};

struct bio___5_10 {
	struct gendisk *bi_disk;
} __attribute__((preserve_access_index));

struct kiocb {
	struct file___disk *ki_filp;
};

struct iomap_dio { /* of fs/iomap/direct-io.c */
	struct kiocb *iocb;
};

#pragma clang attribute pop

struct bio_vec { /* the same in all kernels: an array's element */
	struct page *bv_page;
	unsigned int bv_len, bv_offset;
};

DISK_HASH(disk_files, 16384, struct disk_file_key, struct disk_file);

/* What found no room there. */
DISK_HASH(disk_rest_files, 4096, struct disk_file_key, struct disk_file);

static const struct disk_file no_file;

static __always_inline void inode_names(__u64 ino, __u32 dev, struct inode___pages *inode)
{
	unsigned long first = (unsigned long)BPF_CORE_READ(inode, i_dentry.first), at = 0;
	struct dentry___union *old = NULL;
	struct dentry___7_1 *now = NULL;

	if (bpf_core_field_exists(old->d_u))
		at = bpf_core_field_offset(old->d_u.d_alias);
	else
		at = bpf_core_field_offset(now->d_alias);
	file_names(ino, dev, first > at ? (struct dentry___disk *)(first - at) : NULL);
}

/* The first page of its folio. Bit 0 says that it is not the first; the rest is the first one's
 * address, or from 7.x on, where a struct page has a power of two bytes, the mask that gives it
 * (include/linux/page-flags.h, _compound_head; read in the headers of 7.2). */
static __always_inline struct page *page_head(struct page *page)
{
	struct page___7 *now = (void *)page;
	unsigned long info, rest;

	if (bpf_core_field_exists(now->compound_info))
		info = BPF_CORE_READ(now, compound_info);
	else
		info = BPF_CORE_READ(page, compound_head);
	if (!(info & 1))
		return page;
	rest = ~(info & ~1ul);
	if (!(rest & (rest + 1))) /* ones above, zeros below: no address */
		return (struct page *)((unsigned long)page & info);
	return (struct page *)(info - 1);
}

static __always_inline struct inode___pages *page_inode(struct page *page)
{
	unsigned long mapping;

	page = page_head(page);
	if (bpf_core_field_exists(page->mapping))
		mapping = (unsigned long)BPF_CORE_READ(page, mapping);
	else
		mapping = (unsigned long)BPF_CORE_READ((struct folio *)page, mapping);
	if (!mapping || mapping & PAGE_NOT_A_FILES)
		return NULL;
	return BPF_CORE_READ((struct address_space *)mapping, host);
}

/* Which file it is: of a device's pages the device, with no number. */
static __always_inline void inode_key(struct inode___pages *inode, struct disk_file_key *key)
{
	if ((BPF_CORE_READ(inode, i_mode) & S_IFMT) == S_IFBLK) {
		key->dev = BPF_CORE_READ(inode, i_rdev);
		key->ino = 0;
		return;
	}
	key->ino = BPF_CORE_READ(inode, i_ino);
	key->dev = BPF_CORE_READ(inode, i_sb, s_dev);
}

static __always_inline struct disk_file *file_get(struct disk_file_key *key,
						  struct inode___pages *inode)
{
	struct disk_file *f = bpf_map_lookup_elem(&disk_files, key);
	bool added;

	if (f)
		return f;
	added = !bpf_map_update_elem(&disk_files, key, &no_file, BPF_NOEXIST);
	made(DISK_MADE_FILES);
	if (added && key->ino) {
		inode_names(key->ino, key->dev, inode);
		f = bpf_map_lookup_elem(&disk_files, key);
		if (f)
			f->blocks = BPF_CORE_READ(inode, i_blocks);
		return f;
	}
	f = bpf_map_lookup_elem(&disk_files, key); /* another CPU made it, or there is no room */
	return f;
}

/* Files that find no room are summed by who, and by disk. */
static __always_inline struct disk_file *file_of_sum(struct disk_file_key *key,
						     struct inode___pages *inode)
{
	struct disk_file *f = file_get(key, inode);

	if (f)
		return f;
	key->ino = DISK_OTHERS;
	key->dev = 0;
	f = bpf_map_lookup_elem(&disk_rest_files, key);
	if (f)
		return f;
	bpf_map_update_elem(&disk_rest_files, key, &no_file, BPF_NOEXIST);
	made(DISK_MADE_REST_FILES);
	f = bpf_map_lookup_elem(&disk_rest_files, key);
	if (!f)
		__sync_fetch_and_add(&disk_lost.files, 1);
	return f;
}

static __always_inline void file_add(const struct disk_key *rq, struct inode___pages *inode,
				     __u32 bytes, bool counts)
{
	struct disk_file_key key = {
		.who = rq->who, .epoch = rq->epoch, .major = rq->major, .minor = rq->minor};
	struct disk_file *f;

	if (inode)
		inode_key(inode, &key);
	f = file_of_sum(&key, inode);
	if (!f)
		return;
	if (rq->op) {
		__sync_fetch_and_add(&f->writes, counts);
		__sync_fetch_and_add(&f->write_bytes, bytes);
	} else {
		__sync_fetch_and_add(&f->reads, counts);
		__sync_fetch_and_add(&f->read_bytes, bytes);
	}
}

/* What the kernel calls when a direct read or write of a file is over (rule 6); 0: not known. */
extern const void iomap_dio_bio_end_io __ksym __weak;

static __always_inline struct inode___pages *bio_inode(struct bio *bio)
{
	unsigned long vec = (unsigned long)bio->bi_io_vec, end = (unsigned long)bio->bi_end_io;
	struct page *page = NULL;

	if (end && end == (unsigned long)&iomap_dio_bio_end_io)
		return (void *)BPF_CORE_READ((struct iomap_dio *)bio->bi_private, iocb, ki_filp,
					     f_inode);
	if (!vec)
		return NULL;
	vec += (bio->bi_iter.bi_idx & 0xffff) * sizeof(struct bio_vec);
	bpf_probe_read_kernel(&page, sizeof(page), (void *)vec);
	return page ? page_inode(page) : NULL;
}

/* `bytes` of a request are done; its bios are those that are not done before. With the last of them
 * it `counts`, for the first file of these. */
static __always_inline void request_files(struct bio *bio, const struct disk_key *rq, __u32 bytes,
					  bool counts)
{
	struct inode___pages *inode = NULL, *next;
	__u32 sum = 0, left = bytes, size;

	if (rq->op > 1 || !bytes) /* read, write */
		return;
	for (int i = 0; i < DISK_BIOS && bio && left; i++) {
		next = bio_inode(bio);
		if (i && next != inode) {
			file_add(rq, inode, sum, counts);
			counts = false;
			sum = 0;
		}
		inode = next;
		size = bio->bi_iter.bi_size;
		size = size < left ? size : left;
		sum += size;
		left -= size;
		bio = bio->bi_next;
	}
	file_add(rq, inode, sum + left, counts);
}

/* inode_key of one that a typed tracepoint leads to. */
static __always_inline void inode_key_typed(struct inode___pages *inode, struct disk_file_key *key)
{
	if ((inode->i_mode & S_IFMT) == S_IFBLK) {
		key->dev = inode->i_rdev;
		key->ino = 0;
		return;
	}
	key->ino = inode->i_ino;
	key->dev = inode->i_sb->s_dev;
}

/* `typed`: the kernel is one with folios. */
static __always_inline int dirtied(struct address_space *mapping, __u32 order, bool typed)
{
	struct disk_file_key key = {.epoch = disk_epoch};
	struct inode___pages *inode = mapping ? mapping->host : NULL;
	struct disk_file *f;

	if (!inode)
		return 0;
	if (typed) {
		who_fill_typed(&key.who);
		inode_key_typed(inode, &key);
	} else {
		who_fill(&key.who);
		inode_key(inode, &key);
	}
	f = file_of_sum(&key, inode);
	if (f)
		__sync_fetch_and_add(&f->dirty_bytes, DISK_PAGE << (order & 31));
	return 0;
}

static __always_inline __u32 folio_order(struct folio *folio)
{
	struct folio___6_1 *old = (void *)folio;
	unsigned long flags = 0;

	bpf_probe_read_kernel(&flags, sizeof(flags), folio); /* the first of all kernels' fields */
	if (!(flags >> bpf_core_enum_value(enum pageflags, PG_head) & 1))
		return 0;
	if (bpf_core_field_exists(old->_folio_order))
		return BPF_CORE_READ(old, _folio_order);
	return BPF_CORE_READ(folio, _flags_1) & 0xff;
}

TRACEPOINT(writeback_dirty_folio, disk_dirty, struct folio *folio, struct address_space *mapping)
{
	return dirtied(mapping, folio_order(folio), true);
}

TRACEPOINT(writeback_dirty_page, disk_dirty_page, struct page *page, /* before 5.18 */
	   struct address_space *mapping)
{
	return dirtied(mapping, 0, false);
}

/* Each open file that has no name any more, and lies on a disk: struct disk_held. */
SEC("iter/task_file")
int disk_held(struct bpf_iter__task_file *ctx)
{
	struct task_struct *task = ctx->task;
	struct file *file = ctx->file;
	struct inode___pages *inode;
	struct disk_held h = {.fd = ctx->fd};
	unsigned long magic;

	if (!task || !file)
		return 0;
	inode = (struct inode___pages *)BPF_CORE_READ(file, f_inode);
	if (BPF_CORE_READ(inode, i_nlink) || (BPF_CORE_READ(inode, i_mode) & S_IFMT) != S_IFREG)
		return 0;
	magic = BPF_CORE_READ(inode, i_sb, s_magic);
	if (magic == MAGIC_TMPFS || magic == MAGIC_HUGETLBFS)
		return 0;
	who_id_of(&h.who, task);
	h.ino = BPF_CORE_READ(inode, i_ino);
	h.dev = BPF_CORE_READ(inode, i_sb, s_dev);
	bpf_seq_write(ctx->meta->seq, &h, sizeof(h));
	return 0;
}

#endif
