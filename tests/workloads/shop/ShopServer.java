// SPDX-License-Identifier: Apache-2.0
// The same shop under the JDK's own HTTP server. ShopServer PORT
import com.sun.net.httpserver.HttpServer;
import java.net.InetSocketAddress;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.List;
import java.util.concurrent.Executors;
import java.util.stream.Collectors;

public class ShopServer {
    static class Row {
        final int id;
        final String name;
        final double price;

        Row(int id) {
            this.id = id;
            this.name = Long.toHexString(id * 2654435761L % 4294967296L);
            this.price = Math.round(id * 7 % 101 * 119.0) / 100.0;
        }
    }

    static List<Row> basket(int n) {
        List<Row> all = new ArrayList<>();
        for (int i = 1; i <= 400; i++)
            all.add(new Row(i));
        all.sort(Comparator.comparingDouble((Row r) -> r.price).thenComparing(r -> r.name));
        return all.subList(0, n);
    }

    static String page(List<Row> rows) {
        return rows.stream().map(r -> String.format("<li>%d: %s %.2f</li>", r.id, r.name, r.price)).collect(Collectors.joining("\n", "<h1>basket</h1>", ""));
    }

    public static void main(String[] args) throws Exception {
        HttpServer server = HttpServer.create(new InetSocketAddress("127.0.0.1", Integer.parseInt(args[0])), 0);
        server.createContext("/", exchange -> {
            byte[] body = page(basket(30)).getBytes();
            exchange.sendResponseHeaders(200, body.length);
            exchange.getResponseBody().write(body);
            exchange.close();
        });
        server.setExecutor(Executors.newFixedThreadPool(2));
        server.start();
    }
}
