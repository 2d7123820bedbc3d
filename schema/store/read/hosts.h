/* SPDX-License-Identifier: Apache-2.0 */
/* hosts: in a question over several hosts, the names of a file's containers with its host before them (reader.h). Not for other rooms. */
#ifndef SONDE_STORE_READ_HOSTS_H
#define SONDE_STORE_READ_HOSTS_H

struct sqlite3;

/* The host that a file is of, "unknown" where it does not say; the caller's. NULL: names are as they are. */
char *hosts_of(struct sqlite3 *db);
/* Shadows table `container` of the connection by one of the same columns, whose names begin with "HOST/", and the views with it. SQLite's
 * code. */
int hosts_name(struct sqlite3 *db, const char *host);

#endif
