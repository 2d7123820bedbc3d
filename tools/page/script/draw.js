// SPDX-License-Identifier: Apache-2.0
// draw: draws the visible part of the tree on a canvas. Frames narrower than half a pixel become a grey run and their
// subtrees are skipped: the cost depends on what is visible, not on the size of the profile.

const ROW = 20;
const FONT = '12px ui-monospace, "SF Mono", "DejaVu Sans Mono", Menlo, Consolas, monospace';

// Shortens to this many characters, in the middle, so that both the package and the function's last word stay.
function drawShorten(name, chars) {
	const text = formatSeen(name);
	if (text.length <= chars)
		return text;
	if (chars < 3)
		return '';
	const tail = Math.floor((chars - 1) / 3);
	return text.slice(0, chars - 1 - tail) + '\u2026' + (tail ? text.slice(-tail) : '');
}

// The name, with the direction of a change, and how much if there is room.
function drawText(s, i, chars) {
	const name = s.looks.name[s.tree.look[i]], mark = s.palette.mark ? s.palette.mark(s.tree, i) : null;
	if (!mark || chars < 4)
		return drawShorten(name, chars);
	const more = chars > 22 ? `${mark[0]} ${mark[1]} ` : mark[0] + ' ';
	return more + drawShorten(name, chars - more.length);
}

function drawFill(s, i) {
	return s.palette.node ? s.palette.node(s.tree, i) : s.palette.fill(s.tree.look[i]);
}

function drawLabel(ctx, s, i, x, y, w) {
	const room = w - 8;
	if (room < 14)
		return;
	const short = drawText(s, i, Math.floor(room / s.charWidth));
	if (!short)
		return;
	if (/^[\x20-\x7e\u2026\u25b2\u25bc]*$/.test(short)) {
		ctx.fillText(short, x + 4, y + 14);
		return;
	}
	ctx.save(); // other scripts have other widths: clip
	ctx.beginPath();
	ctx.rect(x, y, w - 2, ROW);
	ctx.clip();
	ctx.fillText(short, x + 4, y + 14);
	ctx.restore();
}

function drawBox(ctx, s, i, x, w, y) {
	const look = s.tree.look[i], p = s.palette, hit = s.hit && i && s.hit[look];
	const width = Math.max(w - (w > 3 ? 1 : 0), 0.5);

	ctx.globalAlpha = s.tree.depth[i] < s.tree.depth[s.zoom] ? 0.75 : 1;
	ctx.fillStyle = hit ? p.hit : s.hit ? p.quiet : drawFill(s, i);
	ctx.fillRect(x, y, width, ROW - 1);
	if (p.border && w > 2) {
		ctx.strokeStyle = p.edge;
		ctx.strokeRect(x + 0.5, y + 0.5, width - 1, ROW - 2);
	}
	if (s.looks.inlined[look] && w > 6) {
		ctx.fillStyle = hit ? p.hitText : p.text;
		for (let k = x + 1; k < x + width - 2; k += 6)
			ctx.fillRect(k, y, 3, 1);
	}
	if (s.looks.origin[look] >= SCRIPT && w > 6) { // a bar at the left marks script frames without using colour
		ctx.fillStyle = hit ? p.hitText : p.text;
		ctx.fillRect(x, y, 2, ROW - 1);
	}
	ctx.globalAlpha = 1;
	ctx.fillStyle = hit ? p.hitText : p.text;
	drawLabel(ctx, s, i, x, y, width);
}

// Position of a row: from the top, or from the bottom of the whole graph.
function drawRow(s, depth) {
	return (s.flip ? s.tree.maxDepth - depth : depth) * ROW - s.scroll;
}

// s: {tree, looks, palette, hit, zoom, focus, x0, x1, width, height, scroll, charWidth, flip}
function drawTree(ctx, s) {
	const t = s.tree, scale = s.width / (s.x1 - s.x0), total = t.total[1];
	const grey = new Float64Array(t.maxDepth + 1).fill(-1);

	ctx.clearRect(0, 0, s.width, s.height);
	ctx.font = FONT;
	ctx.lineWidth = 1;
	for (let i = 0; i < t.n;) {
		const left = (t.x[i] - s.x0) * scale, right = left + total[i] * scale;
		const y = drawRow(s, t.depth[i]), seen = y > -ROW && y < s.height;
		if (!total[i] || right <= 0 || left >= s.width || (s.flip ? y <= -ROW : y >= s.height)) {
			i = t.end[i];
			continue;
		}
		if (right - left < 0.5) {
			const px = Math.floor(left);
			if (px > grey[t.depth[i]] && seen) {
				grey[t.depth[i]] = px;
				ctx.fillStyle = s.palette.small;
				ctx.fillRect(px, y, 1, ROW - 1);
			}
			i = t.end[i];
			continue;
		}
		if (seen) {
			const x = Math.max(left, 0);
			drawBox(ctx, s, i, x, Math.min(right, s.width) - x, y);
		}
		i++;
	}
	drawFocus(ctx, s, scale);
}

function drawFocus(ctx, s, scale) {
	if (s.focus < 0)
		return;
	const t = s.tree, left = Math.max((t.x[s.focus] - s.x0) * scale, 0);
	const right = Math.min((t.x[s.focus] + t.total[1][s.focus] - s.x0) * scale, s.width);
	ctx.strokeStyle = s.palette.ring;
	ctx.lineWidth = 2;
	ctx.strokeRect(left + 1, drawRow(s, t.depth[s.focus]) + 1, Math.max(right - left - 3, 1), ROW - 3);
}
