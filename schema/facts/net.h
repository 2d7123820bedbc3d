/* SPDX-License-Identifier: Apache-2.0 */
/* net: what family net stores (loaders/net): the columns of its tables, in the tables' order. */
#ifndef SONDE_FACTS_NET_H
#define SONDE_FACTS_NET_H

#include "schema/facts/fact.h"

#define FLOW_COLUMNS(X)                                                                                    \
	X(FLOW_PROCESS, "process", PROCESS, KEY, "", "process.id: whose end it is")                        \
	X(FLOW_SIDE, "side", TEXT, KEY, "",                                                                \
	  "text.id: client, server, unknown (it was open before, and nothing tells)")                      \
	X(FLOW_PROTOCOL, "protocol", TEXT, KEY, "", "text.id: tcp, udp, unix")                             \
	X(FLOW_PEER, "peer", TEXT, KEY, "",                                                                \
	  "text.id: address of the other end; of a Unix socket its path; ~other: of those past the limit") \
	X(FLOW_PORT, "port", TEXT, KEY, "",                                                                \
	  "text.id: the server's port, whichever end this is; empty: it has none")                         \
	X(FLOW_MATE, "mate", PROCESS, KEY, "",                                                             \
	  "process.id of the other end, on this host; 0: none, or unknown")                                \
	X(FLOW_OWNER, "owner", TEXT, GAUGE, "",                                                            \
	  "text.id: how the process is known: opener, closer, holder (of a descriptor), listener")         \
	X(FLOW_CONTAINER, "container", CONTAINER, GAUGE, "", "container.id of the process")                \
	X(FLOW_ATTEMPTS, "attempts", NUMBER, COUNTER, "",                                                  \
	  "connections that a client began to open")                                                       \
	X(FLOW_OPENED, "opened", NUMBER, COUNTER, "",                                                      \
	  "of those, established; of a server accepted")                                                   \
	X(FLOW_REFUSED, "refused", NUMBER, COUNTER, "", "not opened: the other end refused")               \
	X(FLOW_TIMED_OUT, "timed_out", NUMBER, COUNTER, "", "not opened: no answer in time")               \
	X(FLOW_UNREACHABLE, "unreachable", NUMBER, COUNTER, "",                                            \
	  "not opened: the other end was unreachable")                                                     \
	X(FLOW_GIVEN_UP, "given_up", NUMBER, COUNTER, "",                                                  \
	  "not opened: the program closed it before there was an answer")                                  \
	X(FLOW_FAILED, "failed", NUMBER, COUNTER, "", "not opened for another reason")                     \
	X(FLOW_CLOSED, "closed", NUMBER, COUNTER, "", "established ones that ended in good order")         \
	X(FLOW_RESET_IN, "reset_in", NUMBER, COUNTER, "", "ended by a reset from the other end")           \
	X(FLOW_RESET_OUT, "reset_out", NUMBER, COUNTER, "",                                                \
	  "ended by a reset from this end: closed with data unread, or by wish")                           \
	X(FLOW_BROKEN, "broken", NUMBER, COUNTER, "",                                                      \
	  "ended because the other end no longer answered")                                                \
	X(FLOW_OPEN_NOW, "open_now", NUMBER, GAUGE, "", "open at the last reading")                        \
	X(FLOW_TX, "tx_bytes", NUMBER, COUNTER, "bytes", "sent, and received by the other end")            \
	X(FLOW_RX, "rx_bytes", NUMBER, COUNTER, "bytes", "received")                                       \
	X(FLOW_SEGS_OUT, "segs_out", NUMBER, TALLY, "", "segments sent")                                   \
	X(FLOW_SEGS_IN, "segs_in", NUMBER, TALLY, "", "segments received")                                 \
	X(FLOW_RETRANS, "retrans", NUMBER, COUNTER, "", "segments retransmitted")                          \
	X(FLOW_LOST, "lost", NUMBER, TALLY, "", "segments considered lost")                                \
	X(FLOW_RTT_SUM, "rtt_sum_us", NUMBER, COUNTER, "us",                                               \
	  "smoothed round-trip times, one of each connection and reading, together")                       \
	X(FLOW_RTT_N, "rtt_n", NUMBER, COUNTER, "", "how many those are")                                  \
	X(FLOW_CONNECT_US, "connect_us", NUMBER, COUNTER, "us",                                            \
	  "time to open, summed; of a client")                                                             \
	X(FLOW_CONNECT_1MS, "connect_1ms", NUMBER, TALLY, "", "opened in less than 1 ms")                  \
	X(FLOW_CONNECT_10MS, "connect_10ms", NUMBER, TALLY, "", "in less than 10 ms")                      \
	X(FLOW_CONNECT_100MS, "connect_100ms", NUMBER, TALLY, "", "in less than 100 ms")                   \
	X(FLOW_CONNECT_1S, "connect_1s", NUMBER, TALLY, "", "in less than 1 s")                            \
	X(FLOW_CONNECT_LONG, "connect_long", NUMBER, TALLY, "",                                            \
	  "in 1 s or more: the first packet was lost")                                                     \
	X(FLOW_LIFE_US, "life_us", NUMBER, COUNTER, "us",                                                  \
	  "how long those that ended were open, summed")

#define LISTENER_COLUMNS(X)                                                                     \
	X(LISTENER_PROCESS, "process", PROCESS, KEY, "", "process.id")                          \
	X(LISTENER_PROTOCOL, "protocol", TEXT, KEY, "", "text.id: tcp, udp, unix")              \
	X(LISTENER_ADDRESS, "address", TEXT, KEY, "",                                           \
	  "text.id: its own address; 0.0.0.0 and ::: all; of a Unix socket its path")           \
	X(LISTENER_PORT, "port", TEXT, KEY, "", "text.id: port; empty: it has none")            \
	X(LISTENER_CONTAINER, "container", CONTAINER, GAUGE, "", "container.id of the process") \
	X(LISTENER_OPEN_TO, "open_to", TEXT, GAUGE, "",                                         \
	  "text.id: who can reach it by its address: host, network")                            \
	X(LISTENER_HOLDERS, "holders", NUMBER, GAUGE, "", "processes that have it")             \
	X(LISTENER_BACKLOG, "backlog", NUMBER, GAUGE, "",                                       \
	  "connections that wait to be accepted, at the last reading")                          \
	X(LISTENER_BACKLOG_MAX, "backlog_max", NUMBER, GAUGE, "", "how many may wait")          \
	X(LISTENER_DROPPED, "dropped", NUMBER, COUNTER, "",                                     \
	  "connections and packets that it had no room for")                                    \
	X(LISTENER_REPEATED, "repeated", NUMBER, COUNTER, "", "retransmitted answers to opens")

#define NETNS_COLUMNS(X)                                                                           \
	X(NETNS_ID, "netns", TEXT, KEY, "", "text.id: inode number of the network namespace")      \
	X(NETNS_CONTAINER, "container", CONTAINER, GAUGE, "",                                      \
	  "container.id: whose it is; 0: the host's, or none's")                                   \
	X(NETNS_ACTIVE, "active_opens", NUMBER, COUNTER, "",                                       \
	  "the kernel's: connections that clients began to open")                                  \
	X(NETNS_PASSIVE, "passive_opens", NUMBER, COUNTER, "",                                     \
	  "the kernel's: connections accepted")                                                    \
	X(NETNS_FAILS, "attempt_fails", NUMBER, COUNTER, "", "the kernel's: opens that failed")    \
	X(NETNS_RESETS, "estab_resets", NUMBER, COUNTER, "",                                       \
	  "the kernel's: established connections that ended by a reset")                           \
	X(NETNS_OUT_RSTS, "out_rsts", NUMBER, COUNTER, "", "the kernel's: resets sent")            \
	X(NETNS_RETRANS, "retrans_segs", NUMBER, COUNTER, "",                                      \
	  "the kernel's: segments retransmitted")                                                  \
	X(NETNS_ESTAB, "curr_estab", NUMBER, GAUGE, "", "the kernel's: connections that are open") \
	X(NETNS_OVERFLOWS, "listen_overflows", NUMBER, COUNTER, "",                                \
	  "the kernel's: a backlog was full")                                                      \
	X(NETNS_DROPS, "listen_drops", NUMBER, COUNTER, "",                                        \
	  "the kernel's: opens dropped by listeners")                                              \
	X(NETNS_UDP_IN, "udp_in", NUMBER, TALLY, "", "the kernel's: datagrams received")           \
	X(NETNS_UDP_OUT, "udp_out", NUMBER, TALLY, "", "the kernel's: datagrams sent")             \
	X(NETNS_UDP_NO_PORT, "udp_no_ports", NUMBER, COUNTER, "",                                  \
	  "the kernel's: datagrams for ports without a listener")                                  \
	X(NETNS_UDP_ERRORS, "udp_errors", NUMBER, COUNTER, "",                                     \
	  "the kernel's: datagrams received and not delivered")                                    \
	X(NETNS_SEEN_ATTEMPTS, "seen_attempts", NUMBER, COUNTER, "",                               \
	  "of active_opens, recorded with their process")                                          \
	X(NETNS_SEEN_ACCEPTED, "seen_accepted", NUMBER, COUNTER, "", "of passive_opens")           \
	X(NETNS_SEEN_FAILS, "seen_fails", NUMBER, COUNTER, "", "of attempt_fails")                 \
	X(NETNS_SEEN_RESETS, "seen_resets", NUMBER, COUNTER, "", "of estab_resets")                \
	X(NETNS_SEEN_RETRANS, "seen_retrans", NUMBER, COUNTER, "", "of retrans_segs")

#define CONNECTION_COLUMNS(X)                                                                    \
	X(CONNECTION_PROCESS, "process", PROCESS, KEY, "", "process.id")                         \
	X(CONNECTION_SIDE, "side", TEXT, KEY, "", "text.id: as in flow_row")                     \
	X(CONNECTION_PROTOCOL, "protocol", TEXT, KEY, "", "text.id")                             \
	X(CONNECTION_PEER, "peer", TEXT, KEY, "", "text.id: address of the other end")           \
	X(CONNECTION_PORT, "port", TEXT, KEY, "", "text.id: the server's port")                  \
	X(CONNECTION_OTHER_PORT, "client_port", TEXT, KEY, "", "text.id: the client's port")     \
	X(CONNECTION_MATE, "mate", PROCESS, GAUGE, "",                                           \
	  "process.id: who has the other end, on this host")                                     \
	X(CONNECTION_RESULT, "result", TEXT, GAUGE, "",                                          \
	  "text.id: how it ended, by the names of flow_row's columns")                           \
	X(CONNECTION_LIFE, "life_us", NUMBER, GAUGE, "us",                                       \
	  "how long it was open; NULL: it was before the capture")                               \
	X(CONNECTION_CONNECT, "connect_us", NUMBER, GAUGE, "us", "opening took, or its failure") \
	X(CONNECTION_TX, "tx_bytes", NUMBER, GAUGE, "bytes", "sent")                             \
	X(CONNECTION_RX, "rx_bytes", NUMBER, GAUGE, "bytes", "received")                         \
	X(CONNECTION_RETRANS, "retrans", NUMBER, GAUGE, "", "segments retransmitted")            \
	X(CONNECTION_RTT, "rtt_us", NUMBER, GAUGE, "us", "smoothed round-trip time")

#define PEER_NAME_COLUMNS(X)                                                                        \
	X(PEER_NAME_PROCESS, "process", PROCESS, KEY, "",                                           \
	  "process.id: who asked for the name, or has the file")                                    \
	X(PEER_NAME_ADDRESS, "address", TEXT, KEY, "",                                              \
	  "text.id: address that it was answered with")                                             \
	X(PEER_NAME_NAME, "name", TEXT, KEY, "", "text.id: name that was asked for")                \
	X(PEER_NAME_HOW, "how", TEXT, KEY, "",                                                      \
	  "text.id: dns (an answer that family l7 saw), hosts (/etc/hosts as the process sees it)") \
	X(PEER_NAME_COUNT, "n", NUMBER, COUNTER, "",                                                \
	  "buckets and readings in which it was recorded")

#define FLOW_MARK_COLUMNS(X)                                                                                                                                  \
	X(FLOW_MARK_PROCESS, "process", PROCESS, KEY, "",                                                                                                     \
	  "process.id: whose end it is, as in flow_row")                                                                                                      \
	X(FLOW_MARK_SIDE, "side", TEXT, KEY, "", "text.id: as in flow_row")                                                                                   \
	X(FLOW_MARK_PEER, "peer", TEXT, KEY, "", "text.id: as in flow_row")                                                                                   \
	X(FLOW_MARK_PORT, "port", TEXT, KEY, "", "text.id: as in flow_row")                                                                                   \
	X(FLOW_MARK_MARK, "mark", TAG, KEY, "",                                                                                                               \
	  "of one of its connections: a number that its other end comes to as well, whatever host that is on and whatever translates addresses between them") \
	X(FLOW_MARK_COUNT, "n", NUMBER, COUNTER, "", "how often it was recorded in the bucket")

enum peer_name_column { PEER_NAME_COLUMNS(FACT_ID) PEER_NAME_N };
enum flow_mark_column { FLOW_MARK_COLUMNS(FACT_ID) FLOW_MARK_N };
enum flow_column { FLOW_COLUMNS(FACT_ID) FLOW_N };
enum listener_column { LISTENER_COLUMNS(FACT_ID) LISTENER_N };
enum netns_column { NETNS_COLUMNS(FACT_ID) NETNS_N };
enum connection_column { CONNECTION_COLUMNS(FACT_ID) CONNECTION_N };

extern const struct fact FLOW_FACT, LISTENER_FACT, NETNS_FACT, CONNECTION_FACT, PEER_NAME_FACT,
	FLOW_MARK_FACT;

#endif
