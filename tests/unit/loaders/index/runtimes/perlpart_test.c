/* SPDX-License-Identifier: Apache-2.0 */
/* Layouts of Perl against the headers of those that are installed; SONDE_PERL_HEADERS: folders of
 * others, with ':' between them (".../perl/5.40/CORE"). */
#include <glob.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "loaders/index/runtimes/perlpart.h"
#include "tests/unit/missing.h"
#include "tests/unit/test.h"

TEST(a_version_that_is_not_known_has_no_layout)
{
	struct perl_layout l;

	assert_true(perlpart_layout(36, &l));
	assert_int_equal(l.version, 0x0524);
	assert_false(perlpart_layout(30, &l)); /* contexts are shorter */
	assert_false(perlpart_layout(35, &l)); /* in development */
	assert_false(perlpart_layout(44, &l));
}

/* 0: the headers say the same. */
static int headers_check(const char *folder, const struct perl_layout *l)
{
	char cmd[8192], aux[96] = "";

	if (l->aux)
		snprintf(aux, sizeof(aux), "IS(struct xpvhv_with_aux, xhv_aux, %u)", l->aux);
	snprintf(
		cmd, sizeof(cmd),
		"printf '%%s\\n' '#include <stddef.h>' '#include \"EXTERN.h\"' '#include \"perl.h\"' '#define IS(t, m, n) _Static_assert(offsetof(t, m) == n, \"\" #m);' "
		"'IS(struct interpreter, Icurcop, %u) IS(struct interpreter, Icurstackinfo, %u) %s' "
		"'IS(struct stackinfo, si_cxstack, %d) IS(struct stackinfo, si_prev, %d) IS(struct stackinfo, si_cxix, %d) IS(struct stackinfo, si_cxmax, %d)' "
		"'IS(struct stackinfo, si_type, %d) IS(struct context, cx_u.cx_blk.blku_oldcop, %d) IS(struct context, cx_u.cx_blk.blk_u.blku_sub.retop, %d)' "
		"'IS(struct context, cx_u.cx_blk.blk_u.blku_sub.cv, %d) IS(struct cop, cop_line, %d) IS(struct cop, cop_file, %d)' "
		"'IS(struct xpvcv, xcv_stash, %d) IS(struct xpvcv, xcv_root_u, %d) IS(struct xpvcv, xcv_gv_u, %d) IS(struct xpvcv, xcv_file, %d)' "
		"'IS(struct xpvcv, xcv_outside_seq, %d) IS(struct xpvcv, xcv_flags, %d) IS(struct xpvgv, xiv_u, %d) IS(struct xpvgv, xnv_u, %d) IS(struct gp, gp_egv, %d)' "
		"'IS(struct xpvhv, xhv_max, %d) IS(struct xpvhv_aux, xhv_name_u, %d) IS(struct xpvhv_aux, xhv_name_count, %d) IS(struct hek, hek_len, %d) IS(struct hek, hek_key, %d)' "
		"'_Static_assert(sizeof(struct context) == %d && CXt_SUB == %u && CXt_FORMAT == %u && CXt_EVAL == %u && CXp_TRYBLOCK == %u && CXp_SUB_RE_FAKE == %u, \"\");' "
		"'_Static_assert(CXTYPEMASK == 15 && CVf_NAMED == %u && SVt_PVGV == %u && SVt_PVHV == %u && SVt_PVCV == %u && SVf_OOK == %u && PERLSI_MAIN == 1, \"\");' "
		"| gcc -w -fsyntax-only -D_GNU_SOURCE -D_REENTRANT -I'%s' -x c -",
		l->interp_cop, l->interp_stackinfo, aux, PERL_SI_CONTEXTS, PERL_SI_OUTER,
		PERL_SI_LAST, PERL_SI_ROOM, PERL_SI_TYPE, PERL_CX_CALLER, PERL_CX_RETURN,
		PERL_CX_CV, PERL_COP_LINE, PERL_COP_FILE, PERL_CV_STASH, PERL_CV_ROOT, PERL_CV_GV,
		PERL_CV_FILE, PERL_CV_SEQ, PERL_CV_FLAGS, PERL_GV_NAME, PERL_GV_STASH, PERL_GP_EGV,
		PERL_HV_MAX, PERL_AUX_NAME, PERL_AUX_NAMES, PERL_HEK_LENGTH, PERL_HEK_TEXT,
		PERL_CX_SIZE, PERL_CX_SUB, PERL_CX_FORMAT, PERL_CX_EVAL, PERL_CX_BLOCK,
		PERL_CX_FAKE, PERL_CV_NAMED, PERL_TYPE_GV, PERL_TYPE_HV, PERL_TYPE_CV, PERL_HV_AUX,
		folder);
	return system(cmd);
}

TEST(layouts_are_those_of_the_headers)
{
	const char *folders = getenv("SONDE_PERL_HEADERS");
	char all[2048] = "", *save = NULL;
	unsigned version = 0;
	glob_t g;

	if (folders) {
		snprintf(all, sizeof(all), "%s", folders);
	} else if (!glob("/usr/lib/x86_64-linux-gnu/perl/5.*/CORE/perl.h", 0, NULL, &g)) {
		snprintf(all, sizeof(all), "%.*s", (int)(strlen(g.gl_pathv[0]) - 7), g.gl_pathv[0]);
		globfree(&g);
	} else {
		skip_missing("libperl-dev");
		return;
	}
	for (char *folder = strtok_r(all, ":", &save); folder;
	     folder = strtok_r(NULL, ":", &save)) {
		const char *at = strstr(folder, "/perl/5.");
		struct perl_layout l;

		assert_non_null(at);
		assert_int_equal(sscanf(at, "/perl/5.%u", &version), 1);
		assert_true(perlpart_layout(version, &l));
		assert_int_equal(headers_check(folder, &l), 0);
	}
}
