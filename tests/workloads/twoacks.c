/* SPDX-License-Identifier: Apache-2.0 */
/*
 * twoacks N: N connections from another host, played here in a network namespace of its own. The
 * packet that ends each handshake comes twice, on two CPUs at the same moment, as that packet and
 * the first one with data may. Each connection is accepted and reset. Prints {"opened", "port"}.
 */
#include <arpa/inet.h>
#include <fcntl.h>
#include <linux/if_packet.h>
#include <net/ethernet.h>
#include <net/if.h>
#include <netinet/in.h>
#include <netinet/ip.h>
#include <netinet/tcp.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#define FAR       "10.9.9.9"
#define NEAR      "10.8.8.8"
#define NETWORK   "ip link set lo up; ip addr add " NEAR "/32 dev lo; ip route add " FAR "/32 dev lo"
#define FIRST_SEQ 1000u
#define SPINS     100000 /* that a thread waits for the other to be awake */

struct packet {
	struct iphdr ip;
	struct tcphdr tcp;
};

static int lo; /* a packet socket */
static uint16_t port;
static struct packet last; /* that ends a handshake */
static pthread_barrier_t turn, over;
static atomic_uint awake;

static void die(const char *what)
{
	perror(what);
	exit(1);
}

static uint32_t sum_of(const void *data, size_t bytes)
{
	const uint8_t *at = data;
	uint32_t sum = 0;

	for (size_t i = 0; i < bytes; i += 2)
		sum += (uint32_t)at[i] << 8 | at[i + 1];
	return sum;
}

static uint16_t folded(uint32_t sum)
{
	while (sum >> 16)
		sum = (sum & 0xffff) + (sum >> 16);
	return htons((uint16_t)~sum);
}

static struct packet packet_make(uint16_t from, uint32_t seq, uint32_t ack, int syn)
{
	struct packet p = {.ip = {.version = 4,
				  .ihl = 5,
				  .tot_len = htons(sizeof(p)),
				  .ttl = 64,
				  .protocol = IPPROTO_TCP,
				  .saddr = inet_addr(FAR),
				  .daddr = inet_addr(NEAR)},
			   .tcp = {.source = htons(from),
				   .dest = htons(port),
				   .seq = htonl(seq),
				   .ack_seq = htonl(ack),
				   .doff = 5,
				   .syn = syn & 1,
				   .ack = !syn & 1,
				   .window = htons(65535)}};

	p.ip.check = folded(sum_of(&p.ip, sizeof(p.ip)));
	p.tcp.check = folded(sum_of(&p.tcp, sizeof(p.tcp)) + sum_of(&p.ip.saddr, 8) + IPPROTO_TCP +
			     sizeof(p.tcp));
	return p;
}

static void packet_send(const struct packet *p)
{
	struct sockaddr_ll to = {.sll_family = AF_PACKET,
				 .sll_protocol = htons(ETH_P_IP),
				 .sll_ifindex = (int)if_nametoindex("lo"),
				 .sll_halen = ETH_ALEN};

	if (sendto(lo, p, sizeof(*p), 0, (struct sockaddr *)&to, sizeof(to)) != sizeof(*p))
		die("sendto");
}

static void *sends(void *cpu)
{
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET((size_t)(uintptr_t)cpu, &set);
	sched_setaffinity(0, sizeof(set), &set);
	for (unsigned int both = 2;; both += 2) {
		pthread_barrier_wait(&turn);
		atomic_fetch_add(&awake, 1);
		for (int i = 0; i < SPINS && atomic_load(&awake) < both; i++)
			;
		packet_send(&last);
		pthread_barrier_wait(&over);
	}
	return NULL;
}

/* The listener's answer to a SYN from that port; its sequence number. */
static uint32_t answer(uint16_t to)
{
	struct packet p;

	for (;;) {
		if (recv(lo, &p, sizeof(p), 0) < (ssize_t)sizeof(p))
			die("no answer to a SYN");
		if (p.ip.protocol == IPPROTO_TCP && p.tcp.syn && p.tcp.ack &&
		    p.tcp.dest == htons(to))
			return ntohl(p.tcp.seq);
	}
}

static void one(int listener, uint16_t from)
{
	const struct linger reset = {.l_onoff = 1};
	struct packet syn = packet_make(from, FIRST_SEQ, 0, 1);
	int fd;

	packet_send(&syn);
	last = packet_make(from, FIRST_SEQ + 1, answer(from) + 1, 0);
	pthread_barrier_wait(&turn);
	pthread_barrier_wait(&over);
	fd = accept(listener, NULL, NULL);
	if (fd < 0 || setsockopt(fd, SOL_SOCKET, SO_LINGER, &reset, sizeof(reset)))
		die("accept");
	close(fd);
}

int main(int argc, char **argv)
{
	unsigned int n = argc > 1 ? (unsigned int)atoi(argv[1]) : 1000;
	struct sockaddr_in at = {.sin_family = AF_INET};
	const struct timeval patience = {.tv_sec = 5};
	socklen_t len = sizeof(at);
	pthread_t thread;
	int listener;

	if (unshare(CLONE_NEWNET) || system(NETWORK))
		die("network namespace");
	lo = socket(AF_PACKET, SOCK_DGRAM, htons(ETH_P_IP));
	listener = socket(AF_INET, SOCK_STREAM, 0);
	if (lo < 0 || setsockopt(lo, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience)) ||
	    bind(listener, (struct sockaddr *)&at, sizeof(at)) || listen(listener, 16) ||
	    getsockname(listener, (struct sockaddr *)&at, &len))
		die("sockets");
	port = ntohs(at.sin_port);
	pthread_barrier_init(&turn, NULL, 3);
	pthread_barrier_init(&over, NULL, 3);
	for (uintptr_t cpu = 0; cpu < 2; cpu++)
		pthread_create(&thread, NULL, sends, (void *)cpu);
	for (unsigned int i = 1; i <= n; i++)
		one(listener, (uint16_t)(1024 + i));
	printf("{\"opened\": %u, \"port\": %u}\n", n, port);
	return 0;
}
