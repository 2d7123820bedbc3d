/* SPDX-License-Identifier: Apache-2.0 */
/* Parsers of the kernel's accounting files, as kernels from 3.10 to 6.18 write them. */
#include <stdio.h>
#include <string.h>

#include "loaders/host/filesystems.h"
#include "loaders/host/parse.h"
#include "schema/facts/host.h"
#include "tests/unit/test.h"

#define TEXT(s) (s), sizeof(s) - 1
#define assert_column(row, column, value)                           \
	do {                                                        \
		assert_true(fact_has((row), (column)));             \
		assert_int_equal((row)->v[column].number, (value)); \
	} while (0)

TEST(names_are_matched_whole_and_a_unit_is_what_the_table_says)
{
	static const struct parse_key keys[] = {{"MemTotal", 1, 1024, 0},
						{"Mem", 2, 0, 0},
						{"throttled_time", 3, 0, 1000},
						{"gone", 4, 0, 0}};
	struct fact_row row = {0};

	parse_keys(
		TEXT("MemTotal:       24684084 kB\nMemTotalX: 7 kB\nthrottled_time 2500\nMem:\nHugePages_Total:       0"),
		keys, 4, &row);
	assert_column(&row, 1, 24684084ll * 1024);
	assert_column(&row, 3, 2);
	assert_int_equal(row.set, 1 << 1 | 1 << 3);
}

TEST(a_second_line_of_a_column_is_added_where_it_is_told_to_be)
{
	static const struct parse_key keys[] = {
		{"anon", 0, 0, 0}, {"shmem", 0, 0, 0, true}, {"alone", 1, 0, 0, true}};
	struct fact_row row = {0};

	parse_keys(TEXT("anon 100\nfile 300\nshmem 50\nalone 7\n"), keys, 3, &row);
	assert_column(&row, 0, 150);
	assert_column(&row, 1, 7);
}

TEST(a_number_that_is_none_or_too_large_leaves_its_column_alone)
{
	static const struct parse_key keys[] = {{"a", 0, 1024, 0}, {"b", 1, 0, 0}, {"c", 2, 0, 0}};
	struct fact_row row = {0};

	parse_keys(TEXT("a 18446744073709551615\nb 99999999999999999999\nc -5\n"), keys, 3, &row);
	assert_int_equal(row.set, 0);
}

TEST(a_limit_may_say_that_there_is_none)
{
	uint64_t n = 7;

	assert_false(parse_limit(TEXT("max\n"), &n));
	assert_false(parse_limit(TEXT("9223372036854771712\n"), &n)); /* v1 */
	assert_false(parse_limit(TEXT("-1\n"), &n));
	assert_false(parse_limit(TEXT(""), &n));
	assert_int_equal(n, 7);
	assert_true(parse_limit(TEXT("67108864\n"), &n));
	assert_int_equal(n, 67108864);
	assert_false(parse_cpu_max(TEXT("max 100000\n"), &n));
	assert_true(parse_cpu_max(TEXT("30000 100000\n"), &n));
	assert_int_equal(n, 300);
	assert_false(parse_cpu_max(TEXT("30000 0\n"), &n));
}

TEST(pressure_is_its_totals)
{
	struct fact_row row = {0};

	parse_pressure(
		TEXT("some avg10=98.34 avg60=97.25 avg300=82.47 total=6993934670\nfull avg10=0.00 avg60=0.00 avg300=0.00 total=12\n"),
		HOST_PSI_MEM, HOST_PSI_MEM_FULL, &row);
	assert_column(&row, HOST_PSI_MEM, 6993934670ll);
	assert_column(&row, HOST_PSI_MEM_FULL, 12);
	row.set = 0; /* before 5.13 the file of the CPU has no "full" */
	parse_pressure(TEXT("some avg10=0.00 avg60=0.00 avg300=0.00 total=5\n"), HOST_PSI_CPU, -1,
		       &row);
	assert_int_equal(row.set, 1ull << HOST_PSI_CPU);
}

TEST(the_time_of_all_cpus_is_told_in_microseconds_whatever_a_tick_is)
{
	static const char stat[] =
		"cpu  1275539 135851 561840 1109085 7746 0 25137 771 0 0\ncpu0 1 2 3 4 5 6 7 8 0 0\ncpu1 1 2 3 4 5 6 7 8 0 0\n"
		"intr 33 0 1\nctxt 987654\nbtime 1700000000\nprocesses 4711\nprocs_running 3\nprocs_blocked 1\nsoftirq 1 2\n";
	struct fact_row row = {0};

	parse_stat(TEXT(stat), 100, &row);
	assert_column(&row, HOST_USER, 12755390000ll);
	assert_column(&row, HOST_NICE, 1358510000ll);
	assert_column(&row, HOST_IDLE, 11090850000ll);
	assert_column(&row, HOST_STEAL, 7710000);
	assert_column(&row, HOST_CPUS, 2);
	assert_column(&row, HOST_SWITCHES, 987654);
	assert_column(&row, HOST_FORKS, 4711);
	assert_column(&row, HOST_RUNNING, 3);
	assert_column(&row, HOST_BLOCKED, 1);
	parse_stat(TEXT("cpu  1000 0 0 0\n"), 1000, &row); /* 2.4 had four */
	assert_column(&row, HOST_USER, 1000000);
}

TEST(load_averages_are_thousandths)
{
	struct fact_row row = {0};

	parse_loadavg(TEXT("13.67 9.07 0.5 19/199 15739\n"), &row);
	assert_column(&row, HOST_LOAD1, 13670);
	assert_column(&row, HOST_LOAD5, 9070);
	assert_column(&row, HOST_LOAD15, 500);
}

TEST(disks_are_read_of_kernels_with_eleven_fifteen_and_seventeen_numbers)
{
	static const char text[] =
		"   7       0 loop0 0 0 0 0 0 0 0 0 0 0 0\n"
		" 259       0 nvme0n1 10 1 80 30 20 2 160 40 3 50 70 1 2 3 4\n"
		" 254       0 vda 2287661 124809 113980650 2437652 1647445 646831 139417064 1008927 0 413112 3671438 686702 352 "
		"118069616 88447 397987 136410\n   8       1 sda1 1 2 3 4\n";
	struct parse_disk d;
	size_t pos = 0;

	assert_true(parse_next_disk(TEXT(text), &pos, &d));
	assert_int_equal(d.name_len, 5);
	assert_true(parse_next_disk(TEXT(text), &pos, &d));
	assert_column(&d.row, DISK_READS, 10);
	assert_column(&d.row, DISK_READ_BYTES, 80 * 512);
	assert_column(&d.row, DISK_WRITE_US, 40000);
	assert_column(&d.row, DISK_IN_FLIGHT, 3);
	assert_column(&d.row, DISK_BUSY_US, 50000);
	assert_column(&d.row, DISK_WAIT_US, 70000);
	assert_true(parse_next_disk(TEXT(text), &pos, &d));
	assert_int_equal(d.major, 254);
	assert_memory_equal(d.name, "vda", 3);
	assert_column(&d.row, DISK_WRITE_BYTES, 139417064ll * 512);
	assert_false(parse_next_disk(TEXT(text), &pos, &d)); /* partitions of 2.6.24 and before */
}

TEST(interfaces_are_read_with_and_without_a_blank_behind_the_colon)
{
	static const char text[] =
		"Inter-|   Receive                                                |  Transmit\n"
		" face |bytes    packets errs drop fifo frame compressed multicast|bytes    packets errs drop fifo colls carrier compressed\n"
		"    lo: 100 2 0 0 0 0 0 0 100 2 0 0 0 0 0 0\n"
		"wlp2s0:9999 8 7 6 5 4 3 2 1111 12 13 14 15 16 17 18\n";
	struct parse_nic n;
	size_t pos = 0;

	assert_true(parse_next_nic(TEXT(text), &pos, &n));
	assert_int_equal(n.name_len, 2);
	assert_true(parse_next_nic(TEXT(text), &pos, &n));
	assert_int_equal(n.name_len, 6);
	assert_column(&n.row, NIC_RX_BYTES, 9999);
	assert_column(&n.row, NIC_RX_DROPS, 6);
	assert_column(&n.row, NIC_TX_BYTES, 1111);
	assert_column(&n.row, NIC_TX_PACKETS, 12);
	assert_column(&n.row, NIC_TX_DROPS, 14);
	assert_false(parse_next_nic(TEXT(text), &pos, &n));
}

static bool wanted(const char *line)
{
	struct parse_mount m;
	size_t pos = 0;

	assert_true(parse_next_mount(line, strlen(line), &pos, &m));
	return filesystems_wanted(&m);
}

TEST(of_mounts_those_that_hold_files_are_told_once)
{
	static const char text[] =
		"36 35 98:0 /mnt1 /mnt\\0402 rw,noatime master:1 shared:2 - ext3 /dev/root rw,errors=continue\nnonsense\n"
		"37 35 0:40 / /x ro - nfs4 server:/x ro,vers=4.2\n";
	struct parse_mount m;
	size_t pos = 0;

	assert_true(parse_next_mount(TEXT(text), &pos, &m));
	assert_int_equal(m.major, 98);
	assert_memory_equal(m.point, "/mnt\\0402", m.point_len);
	assert_memory_equal(m.type, "ext3", m.type_len);
	assert_memory_equal(m.source, "/dev/root", m.source_len);
	assert_true(parse_has_option(m.super, m.super_len, "rw"));
	assert_false(parse_has_option(m.super, m.super_len, "errors"));
	assert_true(parse_next_mount(TEXT(text), &pos, &m));
	assert_true(filesystems_wanted(&m));
	assert_true(parse_has_option(m.options, m.options_len, "ro"));
	assert_false(parse_next_mount(TEXT(text), &pos, &m));
	assert_true(wanted("1 0 0:30 /@ / rw - btrfs /dev/sda2 rw,subvol=/@"));
	assert_true(wanted("1 0 0:30 / / rw - overlay overlay rw,lowerdir=/a,upperdir=/b"));
	assert_true(wanted("1 0 0:31 / /mnt/cloud rw - fuse.rclone remote: rw"));
	assert_false(
		wanted("1 0 0:32 / /var/lib/docker/overlay2/abc/merged rw - overlay overlay rw"));
	assert_false(wanted("1 0 0:33 / /proc rw - proc proc rw"));
	assert_false(wanted("1 0 0:34 / /home rw - autofs auto.home rw"));
	assert_false(wanted("1 0 7:1 / /snap/core/1 ro - squashfs /dev/loop1 ro"));
}

TEST(what_a_cgroup_read_and_wrote_is_told_by_device)
{
	struct parse_io io[PARSE_IO_MAX] = {{0}};
	size_t n = 0;

	parse_io_stat(
		TEXT("254:0 rbytes=4096 wbytes=8192 rios=1 wios=2 dbytes=0 dios=0\n253:1 \n8:16 rbytes=1 wbytes=2 rios=3 wios=4 cost.usage=5\n"),
		io, &n);
	assert_int_equal(n, 3); /* 5.x writes devices without numbers, too */
	assert_int_equal(io[0].write_bytes, 8192);
	assert_int_equal(io[2].minor, 16);
	assert_int_equal(io[2].writes, 4);
	n = 0;
	parse_blkio(
		TEXT("254:0 Read 4096\n254:0 Write 8192\n254:0 Sync 1\n254:0 Async 2\n254:0 Discard 0\n254:0 Total 12288\nTotal 12288\n"),
		true, io, &n);
	parse_blkio(TEXT("254:0 Read 1\n254:0 Write 2\n254:0 Total 3\nTotal 3\n"), false, io, &n);
	assert_int_equal(n, 1);
	assert_int_equal(io[0].read_bytes, 4096);
	assert_int_equal(io[0].write_bytes, 8192);
	assert_int_equal(io[0].reads, 1);
	assert_int_equal(io[0].writes, 2);
}

TEST(more_devices_than_there_is_room_for_are_left_out)
{
	struct parse_io io[PARSE_IO_MAX];
	char text[4000];
	size_t n = 0, len = 0;

	for (int i = 0; i < 100; i++)
		len += (size_t)snprintf(text + len, sizeof(text) - len, "8:%d rbytes=1 wbytes=2\n",
					i);
	parse_io_stat(text, len, io, &n);
	assert_int_equal(n, PARSE_IO_MAX);
}

TEST(a_command_may_have_any_name)
{
	static const char text[] =
		"812 (a) R 1 (b\nc) S 1 812 812 0 -1 4194304 11 12 13 14 250 60 17 18 20 0 3 0 4242 1000000 77 1844 1 1 0 0 0 0 0\n";
	static const char kernel[] =
		"2 (kthreadd) S 0 0 0 0 -1 2129984 0 0 0 0 0 5 0 0 20 0 1 0 1 0 0 18446744073709551615 0\n";
	static const char ending[] =
		"812 (a) Z 1 812 812 0 -1 4194316 11 12 13 14 250 60 17 18 20 0 1 0 4242 0 0 18446744073709551615 0\n";
	struct parse_task t;

	assert_true(parse_task_stat(TEXT(ending), 100, 4096, &t));
	assert_column(&t.row, PROCESS_USER, 2500000);
	assert_false(fact_has(&t.row, PROCESS_RSS)); /* not 0: it had some a moment before */
	assert_true(parse_task_stat(TEXT(text), 100, 4096, &t));
	assert_column(&t.row, PROCESS_MINFLT, 11);
	assert_column(&t.row, PROCESS_MAJFLT, 13);
	assert_column(&t.row, PROCESS_USER, 2500000);
	assert_column(&t.row, PROCESS_SYSTEM, 600000);
	assert_column(&t.row, PROCESS_THREADS, 3);
	assert_column(&t.row, PROCESS_RSS, 77 * 4096);
	assert_int_equal(t.start_ticks, 4242);
	assert_false(t.kernel);
	assert_true(parse_task_stat(TEXT(kernel), 100, 4096, &t));
	assert_true(t.kernel);
	assert_false(parse_task_stat(TEXT("812 (a) R 1 2 3\n"), 100, 4096, &t));
	assert_false(parse_task_stat(TEXT("no such file"), 100, 4096, &t));
}
