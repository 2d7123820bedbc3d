-- SPDX-License-Identifier: Apache-2.0
-- recordings: what recorded when, and how it ended
SELECT id, family, "from", "to", round((to_ns - from_ns) / 1e9, 1) AS seconds, state, options FROM runs ORDER BY from_ns, id;
