/* SPDX-License-Identifier: Apache-2.0 */
/* hosts: in a question over several hosts, the names of a file's containers with its host before
 * them. */
#ifndef SONDE_STORE_READ_HOSTS_H
#define SONDE_STORE_READ_HOSTS_H

#include <stdbool.h>

struct sqlite3;

/*
 * Several stores at once, such as those of several hosts: a list of paths with STORE_LIST between
 * them can take the place of one store. Before querying such a list, make names unique: with
 * store_name_hosts(true) each file that is opened says "HOST/NAME" for its containers, and "HOST"
 * for the container of a process (struct store_process_row) that runs in none.
 */
#define STORE_LIST '\n'
void store_name_hosts(bool on);
bool store_names_hosts(void);

/* --- not for other rooms --- */

/* The host that a file is of, "unknown" where it does not say; the caller's. NULL: names are as
 * they are. */
char *hosts_of(struct sqlite3 *db);
/* Shadows table `container` of the connection by one of the same columns, whose names begin with
 * "HOST/", and the views with it. SQLite's code. */
int hosts_name(struct sqlite3 *db, const char *host);

#endif
