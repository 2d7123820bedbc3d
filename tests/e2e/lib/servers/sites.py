# SPDX-License-Identifier: Apache-2.0
"""Sites of others as their distributions have them: WordPress with MariaDB, Django with SQLite, Next.js, jekyll. Made ready in a folder of the test."""
import glob
import os
import shutil
import subprocess
import time

import pytest

from conftest import BUILD, need
from scripting import unpacked

WORDPRESS_CONFIG = """<?php
define('DB_NAME', 'wordpress'); define('DB_USER', 'root'); define('DB_PASSWORD', ''); define('DB_HOST', 'localhost:SOCKET');
define('DB_CHARSET', 'utf8mb4'); define('DB_COLLATE', '');
define('WP_HOME', 'http://localhost'); define('WP_SITEURL', 'http://localhost');
define('WP_HTTP_BLOCK_EXTERNAL', true); define('DISABLE_WP_CRON', true); define('AUTOMATIC_UPDATER_DISABLED', true);
$table_prefix = 'wp_';
if (!defined('ABSPATH')) define('ABSPATH', __DIR__ . '/');
require_once ABSPATH . 'wp-settings.php';
"""

WORDPRESS_INSTALL = """
define('WP_INSTALLING', true);
$_SERVER['HTTP_HOST'] = 'localhost'; $_SERVER['SERVER_PROTOCOL'] = 'HTTP/1.1'; $_SERVER['REQUEST_URI'] = '/';
function wp_mail() { return true; }
require 'wp-load.php';
require_once 'wp-admin/includes/upgrade.php';
wp_install('A shop', 'admin', 'admin@example.org', true, '', 'secret');
for ($i = 0; $i < 20; $i++)
    wp_insert_post(['post_title' => "Article $i", 'post_content' => str_repeat("<p>It's a \\"good\\" one -- no. $i ...</p>\\n\\n", 10), 'post_status' => 'publish']);
"""


class MariaDB:
    """A server without any network, in a folder; `socket` is where it listens."""

    def __init__(self, folder):
        need("mariadbd", "/usr/sbin/mariadbd")
        self.socket, data = os.path.join(folder, "db.sock"), os.path.join(folder, "db")
        subprocess.run(["mariadb-install-db", "--no-defaults", f"--datadir={data}", "--auth-root-authentication-method=normal", "--user=root",
                        "--skip-test-db"], check=True, capture_output=True, timeout=300)
        self.child = subprocess.Popen(["/usr/sbin/mariadbd", "--no-defaults", f"--datadir={data}", f"--socket={self.socket}", "--skip-networking",
                                       f"--pid-file={folder}/db.pid", "--user=root", "--innodb-buffer-pool-size=32M"],
                                      stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        while subprocess.run(["mariadb", "--no-defaults", "-S", self.socket, "-e", "CREATE DATABASE IF NOT EXISTS wordpress"], capture_output=True,
                             check=False).returncode:
            assert self.child.poll() is None, "mariadbd has ended"
            time.sleep(0.1)

    def stop(self):
        self.child.terminate()
        self.child.wait(60)


def wordpress(folder, socket):
    """Debian's, installed in `folder`: (its files, options of PHP)."""
    usr = unpacked("bookworm", "wordpress wordpress-theme-twentytwentythree php8.2-mysql php8.2-mbstring libphp-phpmailer php-getid3".split())
    at = os.path.join(folder, "wordpress")
    shutil.copytree(f"{usr}/share/wordpress", at, symlinks=False, ignore_dangling_symlinks=True)
    with open(f"{at}/wp-config.php", "w", encoding="utf-8") as f:
        f.write(WORDPRESS_CONFIG.replace("SOCKET", socket))
    libraries = (glob.glob(f"{usr}/lib/php/2*/mysqli.so") or [""])[0].rpartition("/")[0]
    options = [o for name in ("mysqlnd", "mysqli", "mbstring") for o in ("-d", f"extension={libraries}/{name}.so")]
    done = subprocess.run(["php", *options, "-d", "error_reporting=0", "-r", WORDPRESS_INSTALL], cwd=at, capture_output=True, check=False, timeout=300,
                          text=True)
    if done.returncode or "rror" in done.stdout:
        pytest.skip(f"missing: Debian's WordPress: {(done.stdout + done.stderr)[-300:]}")
    return at, options


DJANGO = """
from django.conf import settings
from django.db import connection, models
from django.core.wsgi import get_wsgi_application
from django.template import engines
from django.http import HttpResponse
from django.urls import path
settings.configure(SECRET_KEY="a" * 50, ALLOWED_HOSTS=["*"], ROOT_URLCONF=__name__, INSTALLED_APPS=["django.contrib.contenttypes", "django.contrib.auth"],
    MIDDLEWARE=["django.middleware.security.SecurityMiddleware", "django.middleware.common.CommonMiddleware"],
    DATABASES={"default": {"ENGINE": "django.db.backends.sqlite3", "NAME": "SITE_DB"}}, USE_TZ=True,
    TEMPLATES=[{"BACKEND": "django.template.backends.django.DjangoTemplates"}])
application = get_wsgi_application()

class Article(models.Model):
    title, price = models.CharField(max_length=80), models.IntegerField()
    class Meta:
        app_label = "shop"

PAGE = engines["django"].from_string("<ul>{% for a in articles %}<li>{{ a.title|title }}: {{ a.price|add:1 }} {{ a.title|slugify }}</li>{% endfor %}</ul>")

def basket(request):
    return HttpResponse(PAGE.render({"articles": Article.objects.filter(price__gt=3).order_by("price", "title")[:30]}, request))

urlpatterns = [path("", basket)]

def fill():
    with connection.schema_editor() as editor:
        editor.create_model(Article)
    Article.objects.bulk_create(Article(title=f"an article no. {i}", price=i * 7 % 101) for i in range(400))
"""


def django(folder):
    """Debian's, with a site in `folder`: the value of PYTHONPATH; the application is site_shop:application."""
    usr = unpacked("bookworm", "python3-django python3-asgiref python3-sqlparse python3-tz".split())
    with open(os.path.join(folder, "site_shop.py"), "w", encoding="utf-8") as f:
        f.write(DJANGO.replace("SITE_DB", os.path.join(folder, "site.db")))
    path = f"{usr}/lib/python3/dist-packages:{folder}"
    done = subprocess.run(["/usr/bin/python3", "-c", "import site_shop; site_shop.fill()"], env=dict(os.environ, PYTHONPATH=path), capture_output=True,
                          text=True, check=False)
    if done.returncode:
        pytest.skip(f"missing: Debian's Django: {done.stderr[-300:]}")
    return path


def next_site():
    """Next.js of npm and a page of it, under build/; skips where they cannot be had."""
    at = os.path.join(BUILD, "node-next")
    os.makedirs(f"{at}/app", exist_ok=True)
    if not os.path.exists(f"{at}/node_modules/lodash-es"):
        need("npm")
        if subprocess.run(["npm", "install", "--no-audit", "--no-fund", "--ignore-scripts", "next@14.2.35", "react@18.3.1", "react-dom@18.3.1",
                           "lodash-es@4.17.21"], cwd=at, capture_output=True, check=False, timeout=600).returncode:
            pytest.skip("missing: Next.js of npm")
    with open(f"{at}/app/layout.js", "w", encoding="utf-8") as f:
        f.write("export default function Layout({ children }) { return <html><body>{children}</body></html>; }\n")
    with open(f"{at}/app/page.js", "w", encoding="utf-8") as f:
        f.write("import * as all from 'lodash-es';\n"
                "export default function Page() { return <ul>{Object.keys(all).map(k => <li key={k}>{k}</li>)}</ul>; }\n")
    shutil.rmtree(f"{at}/.next", ignore_errors=True)
    return at


JEKYLL = """jekyll ruby-addressable ruby-colorator ruby-em-websocket ruby-eventmachine ruby-http-parser.rb libhttp-parser2.9 ruby-ffi ruby-forwardable-extended ruby-i18n
    ruby-concurrent ruby-jekyll-sass-converter ruby-jekyll-watch ruby-kramdown ruby-kramdown-parser-gfm ruby-liquid ruby-listen ruby-mercenary ruby-pathutil ruby-public-suffix
    ruby-rb-inotify ruby-rouge ruby-sassc ruby-terminal-table ruby-unicode-display-width ruby-webrick"""
LAYOUT = """<html><body><h1>{{ page.title | escape }}</h1>{{ content }}
{% for post in site.posts limit:40 %}<li>{{ post.title | upcase }}: {{ post.content | strip_html | truncatewords: 30 }}</li>{% endfor %}</body></html>
"""
ARTICLE = "* It is *very* **good**, number {} of [them](http://localhost/{}), said \"one\" -- to another...\n"


def jekyll(folder):
    """Debian's, and a site of 200 articles in `folder`: (its command, its environment). Of sassc, which wants its library at one path, only the name is there: the site has no
    style sheets."""
    usr = unpacked("bookworm", JEKYLL.split())
    for name in ("stub", "site/_posts", "site/_layouts"):
        os.makedirs(os.path.join(folder, name))
    files = {"stub/sassc.rb": "module SassC; class Engine; end; class SyntaxError < StandardError; end; end\n", "site/_config.yml": "title: A shop\n",
             "site/_layouts/post.html": LAYOUT}
    for i in range(200):
        files[f"site/_posts/2026-01-01-article-{i}.md"] = f"---\nlayout: post\ntitle: Article {i}\n---\n\n# Head\n\n" + "".join(ARTICLE.format(i, k) for k in range(12)) + \
            "\n```ruby\ndef f(n) = n > 0 ? f(n - 1) : 0\n```\n"
    for name, text in files.items():
        with open(os.path.join(folder, name), "w", encoding="utf-8") as f:
            f.write(text)
    gems = [f"{usr}/share/rubygems-integration/all", f"{usr}/share/rubygems-integration/3.1.0", f"{usr}/lib/x86_64-linux-gnu/rubygems-integration/3.1.0",
            "/usr/lib/ruby/gems/3.1.0", "/usr/share/rubygems-integration/all", "/var/lib/gems/3.1.0"]
    found = glob.glob(f"{usr}/share/rubygems-integration/*/gems/*/lib") + glob.glob(f"{usr}/share/rubygems-integration/all/gems/concurrent-ruby-1*/lib/concurrent-ruby")
    env = {"RUBYLIB": ":".join([f"{folder}/stub", f"{usr}/lib/ruby/vendor_ruby", f"{usr}/lib/x86_64-linux-gnu/ruby/vendor_ruby/3.1.0", *found]),
           "LD_LIBRARY_PATH": f"{usr}/lib/x86_64-linux-gnu", "GEM_PATH": ":".join(gems)}
    done = subprocess.run(["/usr/bin/ruby", f"{usr}/bin/jekyll", "-v"], env=dict(os.environ, **env), capture_output=True, text=True, check=False)
    if done.returncode:
        pytest.skip(f"missing: Debian's jekyll: {done.stderr[:300]}")
    return ["/usr/bin/ruby", f"{usr}/bin/jekyll", "build", "-s", f"{folder}/site", "-d", f"{folder}/out"], env
