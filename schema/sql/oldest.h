/* SPDX-License-Identifier: Apache-2.0 */
/* oldest: the oldest schema version that this program reads. */
#ifndef SONDE_SQL_OLDEST_H
#define SONDE_SQL_OLDEST_H

#define MIGRATE_OLDEST 28 /* files of an older schema are refused: there was no release yet */

#endif
