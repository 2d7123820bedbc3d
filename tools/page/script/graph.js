// SPDX-License-Identifier: Apache-2.0
// graph: one flame graph on one canvas: zoom, focus, pointer. The page passes it the tree to
// draw, and gets clicks and moves through `on`.

// on: {zoom(graph, node), focus(graph, node), tip(graph, node, x, y) (node -1: none)}
function graphInit(box, looks, on) {
	const canvas = box.querySelector('canvas'), tall = box.querySelector('.tall'), ctx = canvas.getContext('2d');
	const still = matchMedia('(prefers-reduced-motion: reduce)');
	const g = {tree: null, looks, palette: null, hit: null, zoom: 0, focus: -1, x0: 0, x1: 1, width: 0, height: 0, scroll: 0,
		charWidth: 7, flip: false, canvas, box};
	let queued = false, motion = 0, whole = false;

	g.redraw = () => {
		if (queued || !g.tree)
			return;
		queued = true;
		requestAnimationFrame(() => {
			queued = false;
			g.paint();
		});
	};
	g.paint = () => {
		g.scroll = whole ? 0 : box.scrollTop;
		drawTree(ctx, g);
		canvas.dataset.drawn = '';
	};
	g.resize = () => {
		const ratio = window.devicePixelRatio || 1;
		if (!g.tree || box.hidden)
			return;
		tall.style.height = (g.tree.maxDepth + 1) * ROW + 'px';
		g.width = Math.max(box.clientWidth, 50);
		g.height = whole ? (g.tree.maxDepth + 1) * ROW : box.clientHeight;
		canvas.width = Math.round(g.width * ratio);
		canvas.height = Math.round(g.height * ratio);
		canvas.style.width = g.width + 'px';
		canvas.style.height = g.height + 'px';
		ctx.setTransform(ratio, 0, 0, ratio, 0, 0);
		ctx.font = FONT;
		g.charWidth = ctx.measureText('MMMMMMMMMM').width / 10;
		g.redraw();
	};
	// for printing: all rows, immediately
	g.showWhole = (yes, palette) => {
		whole = yes;
		g.palette = palette;
		g.resize();
		if (g.tree)
			g.paint();
	};
	// Shows a new tree without animation; zoom and focus are nodes of it.
	g.show = (tree, flip, zoom, focus) => {
		const bottom = flip && (!g.flip || g.tree !== tree);
		Object.assign(g, {tree, flip, zoom, focus, x0: tree.x[zoom], x1: tree.x[zoom] + (tree.total[1][zoom] || 1)});
		motion++;
		g.resize();
		if (bottom)
			box.scrollTop = box.scrollHeight;
		g.redraw();
	};
	g.zoomTo = (i) => {
		g.zoom = i;
		glide(g.tree.x[i], g.tree.x[i] + (g.tree.total[1][i] || 1));
		if (i && (g.focus < 0 || !layoutIsAncestor(g.tree, i, g.focus)))
			g.focus = i;
	};
	g.focusOn = (i) => {
		if (i < 0)
			return;
		g.focus = i;
		const y = (g.flip ? g.tree.maxDepth - g.tree.depth[i] : g.tree.depth[i]) * ROW;
		if (y < box.scrollTop)
			box.scrollTop = y;
		else if (y + ROW > box.scrollTop + g.height)
			box.scrollTop = y + ROW - g.height;
		g.redraw();
		on.focus(g, i);
	};
	g.move = (way) => {
		const t = g.tree, i = Math.max(g.focus, 0);
		const to = way === 'out' ? t.parent[i] : way === 'in' ? layoutFirstChild(t, i)
			: layoutSibling(t, i, way === 'right' ? 1 : -1);
		g.focusOn(to);
	};
	g.nodeAt = (x, y) => {
		const row = Math.floor((y + box.scrollTop) / ROW);
		return layoutAt(g.tree, g.x0 + x * (g.x1 - g.x0) / g.width, g.flip ? g.tree.maxDepth - row : row);
	};

	function glide(x0, x1) {
		const from = [g.x0, g.x1], start = performance.now(), id = ++motion;
		if (still.matches || document.hidden) {
			[g.x0, g.x1] = [x0, x1];
			g.redraw();
			return;
		}
		(function step(now) {
			if (id !== motion)
				return;
			const k = Math.min(1, Math.max(0, (now - start) / 140)), e = 1 - (1 - k) ** 3;
			g.x0 = k < 1 ? from[0] + (x0 - from[0]) * e : x0;
			g.x1 = k < 1 ? from[1] + (x1 - from[1]) * e : x1;
			g.paint();
			if (k < 1)
				requestAnimationFrame(step);
		})(start);
	}

	canvas.addEventListener('mousemove', (e) => on.tip(g, g.nodeAt(e.offsetX, e.offsetY), e.clientX, e.clientY));
	canvas.addEventListener('mouseleave', () => on.tip(g, -1));
	canvas.addEventListener('click', (e) => {
		const i = g.nodeAt(e.offsetX, e.offsetY);
		if (i < 0)
			return;
		g.focus = i;
		on.zoom(g, i);
		g.focusOn(i);
	});
	box.addEventListener('scroll', () => {
		on.tip(g, -1);
		g.redraw();
	});
	new ResizeObserver(g.resize).observe(box);
	return g;
}
