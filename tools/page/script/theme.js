// SPDX-License-Identifier: Apache-2.0
// theme: light or dark, by system or by hand; the choice is stored if the browser allows it.

function themeInit(onChange) {
	const names = ['system', 'light', 'dark'];
	const media = matchMedia('(prefers-color-scheme: dark)');
	let now = 'system';
	try {
		now = localStorage.getItem('sonde-theme') || now;
	} catch (e) { /* storage may be forbidden */ }
	function apply() {
		if (now === 'system')
			delete document.documentElement.dataset.theme;
		else
			document.documentElement.dataset.theme = now;
		$('theme').textContent = 'Theme: ' + now;
		onChange();
	}
	media.addEventListener('change', apply);
	return {
		dark: () => now === 'dark' || (now === 'system' && media.matches),
		next() {
			now = names[(names.indexOf(now) + 1) % names.length];
			try {
				localStorage.setItem('sonde-theme', now);
			} catch (e) { /* as above */ }
			apply();
		},
		apply,
	};
}
