// SPDX-License-Identifier: Apache-2.0
// who: which process in which container a frame's time belongs to. If the graph's rows do not show it, the same view grouped by
// both does, which is made on first use.

const WHO_NAMED = 2;

// The rows of groups above a node, the outermost first.
function whoGroups(looks, t, i) {
	const out = [];
	for (let k = i; k; k = t.parent[k])
		if (looks.origin[t.look[k]] === GROUP)
			out.unshift(t.look[k]);
	return out;
}

// The innermost nodes of groups in a tree.
function whoInner(looks, t) {
	const out = [], group = (i) => looks.origin[t.look[i]] === GROUP;
	for (let i = 1; i < t.n; i = group(i) && i + 1 < t.end[i] && group(i + 1) ? i + 1 : t.end[i])
		if (group(i) && !(i + 1 < t.end[i] && group(i + 1)))
			out.push(i);
	return out;
}

// page.who(graph, node): as text, '' if it cannot be determined.
function whoInit(page) {
	const {looks} = page, kept = {key: null, tree: null};

	function nested() {
		const key = page.forwardKey + page.state.view;
		if (kept.key !== key) {
			const s = {...page.state, group: 'nested'}, p = page.profile;
			const t = buildForward(p, looks, buildLeaves(p, looks, s), s);
			Object.assign(kept, {key, tree: s.view === 'callers' ? buildInverted(t, looks) : t});
		}
		return kept.tree;
	}
	page.who = (g, i) => {
		const {profile, state} = page, groups = whoGroups(looks, g.tree, i), said = profile.whoOf.get(groups.join());
		if (said || state.view === 'sandwich')
			return said || '';
		const t = nested(), path = layoutPath(g.tree, i).slice(groups.length), found = [];
		for (const at of whoInner(looks, t)) {
			const own = whoGroups(looks, t, at), to = groups.length && groups[0] !== own[0] ? -1 : layoutFind(t, path, at);
			if (to >= 0 && t.depth[to] === t.depth[at] + path.length && t.total[1][to])
				found.push({name: profile.whoOf.get(own.join()), value: t.total[1][to]});
		}
		found.sort((a, b) => b.value - a.value);
		return found.slice(0, WHO_NAMED).map((x) => x.name + (found.length > 1 ? ' ' + page.format.share(x.value, g.tree.total[1][i]) : '')).join(', ')
			+ (found.length > WHO_NAMED ? `, and ${found.length - WHO_NAMED} more` : '');
	};
}
