// SPDX-License-Identifier: Apache-2.0
// browser: a headless Chromium (Debian's) for tests/e2e/lib/browser.py, by playwright-core. Reads commands as lines of JSON
// ({"op": ..., ...}) from stdin, answers each with one line: {"ok": value} or {"error": text}.
'use strict';
const fs = require('fs');
const readline = require('readline');
const {chromium} = require('playwright-core');

const ARGS = ['--no-sandbox', '--disable-gpu', '--disable-quic', '--no-first-run', '--disable-background-networking',
	'--disable-component-update', '--disable-sync', '--disable-dev-shm-usage'];

const PATIENCE = 300000; // on a busy host all takes longer, and who waits for what comes loses nothing

let browser, context, page, meter, seen = [], said = [], downloads = [];

async function start({executable, width, height, scripts = true, media = {}, forced = false}) {
	browser = browser || await chromium.launch({executablePath: executable, args: ARGS, headless: true, timeout: PATIENCE});
	if (context)
		await context.close();
	context = await browser.newContext({viewport: {width, height}, javaScriptEnabled: scripts, acceptDownloads: true,
		colorScheme: media.scheme || 'light', reducedMotion: media.motion || 'no-preference',
		forcedColors: forced ? 'active' : 'none', permissions: ['clipboard-read', 'clipboard-write']});
	page = await context.newPage();
	page.setDefaultTimeout(PATIENCE);
	meter = await context.newCDPSession(page);
	await meter.send('Performance.enable', {timeDomain: 'threadTicks'}); // time on the CPU: others may use it, too
	seen = [];
	said = [];
	downloads = [];
	page.on('request', (r) => seen.push(r.url()));
	page.on('console', (m) => said.push(`${m.type()}: ${m.text()}`));
	page.on('pageerror', (e) => said.push('exception: ' + e.message));
	page.on('download', (d) => downloads.push(d));
}

const OPS = {
	start,
	open: async ({url, wait}) => {
		seen = [];
		said = [];
		await page.goto(url);
		if (wait)
			await page.waitForFunction(() => document.documentElement.dataset.state, null, {timeout: PATIENCE});
		return wait ? page.evaluate(() => document.documentElement.dataset.state) : null;
	},
	// an expression, not new Function: the page's policy forbids that, and shall
	js: ({script, args}) => page.evaluate(`(function () {${script}\n})(...${JSON.stringify(args)})`),
	until: async ({script, args, timeout}) => {
		const end = Date.now() + timeout;
		while (!await OPS.js({script, args})) {
			if (Date.now() > end)
				throw new Error('not within ' + timeout + ' ms: ' + script);
			await page.waitForTimeout(20);
		}
	},
	keys: async ({keys}) => {
		for (const k of keys)
			await page.keyboard.press(k);
	},
	type: ({text}) => page.keyboard.type(text),
	move: ({x, y}) => page.mouse.move(x, y),
	click: ({x, y}) => page.mouse.click(x, y),
	drag: async ({x, y, x2, y2}) => {
		await page.mouse.move(x, y);
		await page.mouse.down();
		await page.mouse.move((x + x2) / 2, (y + y2) / 2);
		await page.mouse.move(x2, y2);
		await page.mouse.up();
	},
	press: ({css}) => page.click(css),
	select: ({css, value}) => page.selectOption(css, value),
	fill: ({css, value}) => page.fill(css, value),
	box: ({css}) => page.locator(css).boundingBox(),
	text: ({css}) => page.locator(css).first().textContent(),
	back: () => page.evaluate(() => history.back()),
	forward: () => page.evaluate(() => history.forward()),
	url: () => page.url(),
	content: () => page.content(),
	requests: () => seen,
	console: () => said,
	size: ({width, height}) => page.setViewportSize({width, height}),
	media: (m) => page.emulateMedia(m),
	shot: async ({path, clip, whole}) => {
		await page.screenshot({path, clip: clip || undefined, fullPage: Boolean(whole)});
	},
	pdf: ({path}) => page.pdf({path, preferCSSPageSize: true}),
	download: async ({path}) => {
		const end = Date.now() + 10000;
		while (!downloads.length && Date.now() < end)
			await page.waitForTimeout(20);
		const d = downloads.shift();
		await d.saveAs(path);
		return d.suggestedFilename();
	},
	clipboard: () => page.evaluate(() => navigator.clipboard.readText()),
	axe: async () => {
		// not by a script element: the page's policy would refuse it, and shall
		await page.evaluate(fs.readFileSync(require.resolve('axe-core/axe.min.js'), 'utf8'));
		const r = await page.evaluate(() => window.axe.run(document));
		return r.violations.map((v) => ({id: v.id, impact: v.impact, help: v.help, nodes: v.nodes.map((n) => n.html.slice(0, 200)
			+ ' ' + (n.any[0] ? n.any[0].message : ''))}));
	},
	metrics: async () => {
		const got = await meter.send('Performance.getMetrics');
		return Object.fromEntries(got.metrics.map((m) => [m.name, m.value]));
	},
};

(async () => {
	for await (const line of readline.createInterface({input: process.stdin})) {
		const command = JSON.parse(line);
		let answer;
		try {
			const value = await OPS[command.op](command);
			answer = {ok: value === undefined ? null : value};
		} catch (e) {
			answer = {error: String(e.message).split('\n').slice(0, 4).join(' ')};
		}
		process.stdout.write(JSON.stringify(answer) + '\n');
	}
	if (browser)
		await browser.close();
})();
