/* SPDX-License-Identifier: Apache-2.0 */
/* mend: gives all that root left in a store (owner.h) to the owner of its folder: recordings that
 * root made before the folder became the user's. */
#ifndef SONDE_STORE_FILES_MEND_H
#define SONDE_STORE_FILES_MEND_H

/* Does nothing if the folder is root's, or if others may write to it too. Returns how many files it
 * gave, or -errno: the folder cannot be read, or a file cannot be given. */
int folder_mend(const char *store);

#endif
