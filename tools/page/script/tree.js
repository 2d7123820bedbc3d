// SPDX-License-Identifier: Apache-2.0
// tree: the graph as a text tree, for those who cannot see the canvas; the two stay in step. Only unfolded nodes are
// in the document, the hottest hundred callees of each node first.

const TREE_STEP = 100;

// on: {focus(node), zoom(node), words(tree, node): the text before and after the name}
function treeInit(on) {
	const list = $('tree');
	const s = {t: null, looks: null, open: new Set(), more: new Map(), at: 0, stale: true, key: null};

	function children(i) {
		const all = [];
		for (let j = layoutFirstChild(s.t, i); j >= 0 && j < s.t.end[i]; j = s.t.end[j])
			all.push(j);
		return all;
	}
	function item(i, place, size) {
		const li = document.createElement('li'), leaf = layoutFirstChild(s.t, i) < 0;
		const share = document.createElement('span'), name = document.createElement('span'), more = document.createElement('span');
		li.setAttribute('role', 'treeitem');
		li.setAttribute('aria-level', s.t.depth[i] + 1);
		li.setAttribute('aria-posinset', place);
		li.setAttribute('aria-setsize', size);
		li.setAttribute('aria-selected', i === s.at);
		if (!leaf)
			li.setAttribute('aria-expanded', s.open.has(i));
		li.tabIndex = i === s.at ? 0 : -1;
		li.dataset.node = i;
		li.style.paddingLeft = `min(${s.t.depth[i] * 12 + 4}px, 35%)`;
		[share.textContent, more.textContent] = on.words(s.t, i);
		share.className = 'share';
		name.textContent = drawShorten(s.looks.name[s.t.look[i]], 160);
		name.className = 'name';
		more.className = 'share';
		li.append(share, name, more);
		return li;
	}
	function moreItem(i, left, place, size) {
		const li = document.createElement('li');
		li.setAttribute('role', 'treeitem');
		li.setAttribute('aria-level', s.t.depth[i] + 2);
		li.setAttribute('aria-posinset', place);
		li.setAttribute('aria-setsize', size);
		li.setAttribute('aria-selected', false);
		li.tabIndex = -1;
		li.dataset.more = i;
		li.style.paddingLeft = `min(${s.t.depth[i] * 12 + 16}px, 35%)`;
		li.textContent = `\u2026 ${left} more`;
		return li;
	}
	function draw() {
		s.stale = true;
		if (!s.t || $('panel-tree').hidden)
			return;
		s.stale = false;
		const out = [], todo = [[0, 1, 1]];
		while (todo.length) {
			const [i, place, size] = todo.pop();
			if (i < 0) {
				out.push(moreItem(-i - 1, size - place + 1, place, size));
				continue;
			}
			out.push(item(i, place, size));
			if (!s.open.has(i))
				continue;
			const all = children(i), shown = Math.min(all.length, s.more.get(i) || TREE_STEP);
			if (shown < all.length)
				todo.push([-i - 1, shown + 1, all.length]);
			for (let k = shown - 1; k >= 0; k--)
				todo.push([all[k], k + 1, all.length]);
		}
		list.replaceChildren(...out);
	}
	function reveal(i) {
		for (let k = s.t.parent[i], c = i; c; c = k, k = s.t.parent[k]) {
			s.open.add(k);
			const place = children(k).indexOf(c);
			if (place >= (s.more.get(k) || TREE_STEP))
				s.more.set(k, place + 1);
		}
	}
	function show(i, grab) {
		s.at = i;
		reveal(i);
		draw();
		const li = list.querySelector(`[data-node="${i}"]`);
		if (grab && li)
			li.focus();
		else if (li)
			li.scrollIntoView({block: 'nearest'});
	}
	function toggle(i) {
		if (!s.open.delete(i))
			s.open.add(i);
		draw();
	}
	function pick(i) {
		show(i, true);
		on.focus(i);
	}
	function more(i) {
		s.more.set(i, (s.more.get(i) || TREE_STEP) + TREE_STEP);
		draw();
	}
	list.addEventListener('click', (e) => {
		const li = e.target.closest('li');
		if (!li)
			return;
		if (li.dataset.more !== undefined) {
			more(Number(li.dataset.more));
			return;
		}
		toggle(Number(li.dataset.node));
		pick(Number(li.dataset.node));
	});
	list.addEventListener('keydown', (e) => {
		const li = e.target.closest('li'), next = li && li.nextElementSibling, before = li && li.previousElementSibling;
		const node = li && li.dataset.node !== undefined ? Number(li.dataset.node) : -1;
		const go = (to) => to && (to.dataset.node !== undefined ? pick(Number(to.dataset.node)) : to.focus());
		const acts = {
			ArrowDown: () => go(next),
			ArrowUp: () => go(before),
			ArrowRight: () => (node < 0 ? 0 : s.open.has(node) ? go(next) : (toggle(node), show(node, true))),
			ArrowLeft: () => (node < 0 ? 0 : s.open.has(node) ? (toggle(node), show(node, true)) : node && pick(s.t.parent[node])),
			Home: () => go(list.firstElementChild),
			End: () => go(list.lastElementChild),
			Enter: () => (node < 0 ? more(Number(li.dataset.more)) : on.zoom(node)),
			' ': () => node >= 0 && (toggle(node), show(node, true)),
		};
		if (!li || !acts[e.key] || e.ctrlKey || e.altKey || e.metaKey)
			return;
		e.preventDefault();
		acts[e.key]();
	});
	return {
		set(t, looks) {
			Object.assign(s, {t, looks, at: 0, open: new Set([0]), more: new Map()});
			draw();
		},
		focus(i) {
			if (i < 0 || document.activeElement && list.contains(document.activeElement))
				return;
			s.at = i;
			reveal(i);
			if (!$('panel-tree').hidden)
				show(i, false);
		},
		refresh: () => s.stale && draw(),
		grab: () => show(s.at, true),
	};
}
