/* SPDX-License-Identifier: Apache-2.0 */
/*
 * programs: which arguments of which programs are secrets, as tables. Pure.
 *
 * A rule says where a program takes a secret, and in what form:
 *   -p          the option, its value attached (-pX) or in the next word
 *   --password  the same (--password=X, --password X); -storepass, /p: and userid= likewise: a key
 *               that ends in ':' or '=' has its value attached
 *   login+2     the second word after the word `login`; login+*: all that come after
 *   @2          the second word that is no option; @*: all of them
 * A short option is found in a group of letters, too (-su X), if all before it are FLAGS.
 */
#ifndef SONDE_HOST_SECRETS_PROGRAMS_H
#define SONDE_HOST_SECRETS_PROGRAMS_H

#include "loaders/lib/host/secrets/names.h"

enum rule_kind {
	RULE_SECRET,   /* all of it */
	RULE_ATTACHED, /* all of it, only attached: -pX, never -p X */
	RULE_SEPARATE, /* all of it, only the next word */
	RULE_COLON,    /* after the first ':' : user:X */
	RULE_PERCENT,  /* after the first '%' : user%X */
	RULE_COMMA,    /* after the first ',' : user,X */
	RULE_SLASH,    /* between the first '/' and the last '@' : user/X@database */
	RULE_PAIR,     /* after the first '=' : key=X */
	RULE_COOKIE,   /* the same; without '=' it is the name of a file */
	RULE_PASS,     /* after "pass:", "key:", "hexkey:", ..., as openssl has it */
	RULE_DATA,     /* after ",data=": secret,id=x,data=X */
	RULE_URL,      /* after "://" */
	RULE_NAMED,    /* all of it, if the word before is the name of a secret */
	RULE_TWO,      /* the next two words */
	RULE_LAST,     /* the option says that the last word is one */
	RULE_CODE,     /* no secret: shell code */
	RULE_OTHER,    /* no secret: an option with a value */
	RULE_FLAGS     /* `keys` are the letters of options without values */
};

struct rule {
	const char *programs; /* without versions, separated by single spaces */
	const char *after;    /* only after this word; NULL: everywhere */
	const char *keys;     /* separated by single spaces */
	enum rule_kind kind;
};

/* A program that runs another one, which its arguments name. */
struct carrier {
	const char *programs;
	const char *after;  /* only after one of these words; NULL: always */
	const char *values; /* letters of its options with a value in the next word */
	const char *flags;  /* its long options without a value; NULL: none has one */
	size_t skip;        /* words before the program's name: 1 is a host, a user, a container */
};

#define PROGRAM_RULES    24
#define PROGRAM_CARRIERS 2

struct program {
	const struct rule *rules[PROGRAM_RULES];
	size_t n;
	const struct carrier *carriers[PROGRAM_CARRIERS]; /* none: it runs no other program */
	size_t n_carriers;
	bool plain; /* takes no secrets, runs no other program */
	bool verb;  /* a command of another language, as shell code may hold it */
};

/* By the program's path or name, whatever version is in it (mysql8, psql-15, cmd.exe). False: not
 * known. */
bool program_find(struct span path, struct program *out);

#endif
