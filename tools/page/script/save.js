// SPDX-License-Identifier: Apache-2.0
// save: the view as SVG or PNG, a stack as text. Files are downloads made here: nothing is sent.

function saveFile(name, blob) {
	const a = document.createElement('a');
	a.href = URL.createObjectURL(blob);
	a.download = name;
	document.body.append(a);
	a.click();
	a.remove();
	setTimeout(() => URL.revokeObjectURL(a.href), 10000);
}

function saveEscape(text) {
	// characters that XML cannot contain become a question mark
	return text.replace(/[^\t\n\r\x20-\ud7ff\ue000-\ufffd\u{10000}-\u{10ffff}]/gu, '?').replace(/[&<>"']/g, (c) => `&#${c.charCodeAt(0)};`);
}

// What a graph shows, with its width and zoom, and titles; frames narrower than a fifth of a point are omitted.
function saveSvg(g, title, describe) {
	const t = g.tree, width = Math.round(g.width), total = t.total[1], x0 = t.x[g.zoom], scale = width / (total[g.zoom] || 1), out = [];
	const tall = (t.maxDepth + 1) * ROW + 30;
	for (let i = 0; i < t.n;) {
		const left = Math.max((t.x[i] - x0) * scale, 0), right = Math.min((t.x[i] + total[i] - x0) * scale, width);
		if (right - left < 0.2 || !total[i]) {
			i = t.end[i];
			continue;
		}
		const look = t.look[i], y = 26 + (g.flip ? t.maxDepth - t.depth[i] : t.depth[i]) * ROW, hit = g.hit && i && g.hit[look];
		const text = right - left > 22 ? drawText(g, i, Math.floor((right - left - 6) / 7.2)) : '';
		out.push(`<g><title>${saveEscape(describe(i))}</title><rect x="${left.toFixed(2)}" y="${y}" width="${(right - left).toFixed(2)}" `
			+ `height="${ROW - 1}" fill="${hit ? g.palette.hit : g.hit ? g.palette.quiet : drawFill(g, i)}"/>`
			+ (text ? `<text x="${(left + 3).toFixed(2)}" y="${y + 14}" fill="${hit ? g.palette.hitText : g.palette.text}">${saveEscape(text)}</text>` : '')
			+ '</g>');
		i++;
	}
	return `<svg xmlns="http://www.w3.org/2000/svg" width="${width}" height="${tall}" viewBox="0 0 ${width} ${tall}" font-family="monospace" font-size="12">`
		+ `<rect width="100%" height="100%" fill="${getComputedStyle(document.body).backgroundColor}"/>`
		+ `<text x="3" y="16" fill="${getComputedStyle(document.body).color}">${saveEscape(title)}</text>\n${out.join('\n')}\n</svg>\n`;
}

// All rows, also those scrolled away, up to the maximum height of a canvas.
function savePng(g, done) {
	const canvas = document.createElement('canvas'), ratio = 2, height = Math.min((g.tree.maxDepth + 1) * ROW, 16000 / ratio);
	canvas.width = g.width * ratio;
	canvas.height = height * ratio;
	const ctx = canvas.getContext('2d');
	ctx.fillStyle = getComputedStyle(document.body).backgroundColor;
	ctx.setTransform(ratio, 0, 0, ratio, 0, 0);
	const x0 = g.tree.x[g.zoom]; // the end of a zoom animation
	drawTree(ctx, {...g, x0, x1: x0 + (g.tree.total[1][g.zoom] || 1), height, scroll: 0, focus: -1});
	ctx.globalCompositeOperation = 'destination-over';
	ctx.fillRect(0, 0, g.width, height);
	canvas.toBlob(done);
}

async function saveText(text) {
	try {
		await navigator.clipboard.writeText(text);
		return true;
	} catch (e) { // not allowed here: use the old way
		const area = document.createElement('textarea'), had = document.activeElement;
		area.value = text;
		document.body.append(area);
		area.select();
		const ok = document.execCommand('copy');
		area.remove();
		if (had)
			had.focus();
		return ok;
	}
}
