# SPDX-License-Identifier: Apache-2.0
"""Sites of others under load, started without any option: how many of their samples show the script, whole."""
import os

import pytest

from conftest import need, need_root
from scripting import script_share
from sites import MariaDB, django, jekyll, next_site, wordpress
from test_script_servers import Fpm, fastcgi, fpm_here, indexed, measure, serve

pytestmark = pytest.mark.live


def test_wordpress_under_load(sonde, store, scratch):
    """Debian's, with MariaDB: PHP reads the posts there, and turns them into a page by some thousand functions."""
    need_root()
    fpm, database = fpm_here(), MariaDB(scratch)
    try:
        at, options = wordpress(scratch, database.socket)
        with Fpm(fpm, scratch, *options, "-d", "opcache.enable=1") as server:
            measure(sonde, store, "php", server.workers,
                    lambda: fastcgi(server.at, f"{at}/index.php", "", REQUEST_URI="/", HTTP_HOST="localhost", SERVER_NAME="localhost", SERVER_PROTOCOL="HTTP/1.1"),
                    {"execute_ex"}, {"{main}", "WP_Hook::apply_filters", "apply_filters", "wptexturize"}, lambda page: b"Article 1" in page)
    finally:
        database.stop()


def test_gunicorn_and_django_under_load(sonde, store, scratch):
    """Debian's: queries, a template, middleware."""
    need_root()
    need("gunicorn")
    path = django(scratch)
    serve(sonde, store, ["/usr/bin/python3", "-m", "gunicorn", "-w", "2", "-b", "127.0.0.1:PORT", "site_shop:application"], "python",
          {"_PyEval_EvalFrameDefault"}, {"BaseHandler.get_response", "basket", "Template.render", "slugify"}, {"PYTHONPATH": path}, workers=True)


def test_a_next_js_build(sonde, store):
    """Several processes and worker threads, from their start to their end."""
    need_root()
    need("node")
    at = next_site()
    indexed(sonde, store, ["node"])
    sonde("record", "--families", "cpu", "--freq", "199", "--", "node", f"{at}/node_modules/next/dist/bin/next", "build", store=store, check=True, cwd=at,
          timeout=600, env={"NEXT_TELEMETRY_DISABLED": "1"})
    assert os.path.exists(f"{at}/.next/BUILD_ID")
    whole, shown, missing, unnamed, met = script_share(store, "javascript", ("Builtins_JSEntry",))
    if shown + missing < 100:
        pytest.skip(f"missing: time for this program ({shown + missing} samples)")
    assert whole >= 0.85 * (shown + missing) and unnamed <= 0.01 * shown
    assert any("NormalModule" in (name or "") for name in met), sorted(map(str, met))[:60]


def test_a_jekyll_build(sonde, store, scratch):
    """Debian's: Markdown, templates and colours of 200 articles, from its start to its end."""
    need_root()
    need("ruby", "/usr/bin/ruby")
    command, env = jekyll(scratch)
    indexed(sonde, store, ["/usr/bin/ruby"], "ruby")
    sonde("record", "--families", "cpu", "--freq", "199", "--", *command, store=store, check=True, cwd=scratch, env=env, timeout=300)
    assert os.path.exists(f"{scratch}/out/2026")
    whole, shown, missing, unnamed, met = script_share(store, "ruby", ("rb_vm_exec", "rb_yield"))
    if shown + missing < 100:
        pytest.skip(f"missing: time for this program ({shown + missing} samples)")
    assert whole >= 0.95 * (shown + missing) and unnamed <= 0.01 * shown
    assert any("Liquid" in (name or "") or "render" in (name or "") for name in met) and any("parse" in (name or "") for name in met), sorted(map(str, met))[:60]
