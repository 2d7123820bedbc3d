# SPDX-License-Identifier: Apache-2.0
"""The same shop as a WSGI application, in Flask where `flask` is asked for by its name: gunicorn shop:flask, or shop:plain."""
import hashlib


class Shop:
    def rows(self):
        for i in range(1, 401):
            yield {"id": i, "price": i * 7 % 101}

    def taxed(self, price):
        return round(price * 1.19, 2)

    def basket(self, n):
        found = [{"id": row["id"], "name": hashlib.md5(str(row["id"]).encode()).hexdigest(), "price": self.taxed(row["price"])} for row in self.rows()]
        return sorted(found, key=lambda row: (row["price"], row["name"]))[:n]


def page(rows):
    return "<h1>basket</h1>" + "".join(f"<li>{row['id']}: {row['name']} {row['price']}</li>" for row in rows)


def plain(environ, start_response):
    start_response("200 OK", [("Content-Type", "text/html")])
    return [page(Shop().basket(30)).encode()]


def flask_app():
    from flask import Flask
    app = Flask("shop")
    app.add_url_rule("/", "basket", lambda: page(Shop().basket(30)))
    return app
