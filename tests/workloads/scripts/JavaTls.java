// SPDX-License-Identifier: Apache-2.0
// HTTPS by the JDK alone, for Java 8 and newer. A server counts what it is asked, and a client asks it:
//   JavaTls server KEYS           HttpsServer (an SSLEngine for each connection); prints its port
//   JavaTls sockets KEYS          SSLServerSocket, one thread for each connection; prints its port
//   JavaTls client KEYS           HttpsURLConnection (an SSLSocket for each connection)
//   JavaTls forger KEYS           a client that also writes to /dev/null what an agent would, with a secret that is not its own
// KEYS is a PKCS12 file with the password "changeit". Lines of standard input:
//   URL N          the client asks for it N times, with a number behind it; prints [bytes it got]
//   forge FD       writes a request of the connection FD that nobody made
//   counts         the server prints {"path": times}
import com.sun.net.httpserver.HttpExchange;
import com.sun.net.httpserver.HttpHandler;
import com.sun.net.httpserver.HttpsConfigurator;
import com.sun.net.httpserver.HttpsServer;
import java.io.BufferedReader;
import java.io.FileInputStream;
import java.io.FileOutputStream;
import java.io.FilterInputStream;
import java.io.IOException;
import java.io.InputStream;
import java.io.InputStreamReader;
import java.io.OutputStream;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.net.URL;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.security.KeyStore;
import java.util.Map;
import java.util.TreeMap;
import java.util.concurrent.Executors;
import javax.net.ssl.HostnameVerifier;
import javax.net.ssl.HttpsURLConnection;
import javax.net.ssl.KeyManagerFactory;
import javax.net.ssl.SSLContext;
import javax.net.ssl.SSLServerSocket;
import javax.net.ssl.SSLSession;
import javax.net.ssl.SSLSocket;
import javax.net.ssl.TrustManagerFactory;

public final class JavaTls {
	private static final Map<String, Integer> COUNTS = new TreeMap<>();

	static SSLContext context(String file) throws Exception {
		char[] word = "changeit".toCharArray();
		KeyStore keys = KeyStore.getInstance("PKCS12");
		KeyManagerFactory ours = KeyManagerFactory.getInstance(KeyManagerFactory.getDefaultAlgorithm());
		TrustManagerFactory theirs = TrustManagerFactory.getInstance(TrustManagerFactory.getDefaultAlgorithm());
		SSLContext made = SSLContext.getInstance("TLS");

		try (InputStream in = new FileInputStream(file)) {
			keys.load(in, word);
		}
		ours.init(keys, word);
		theirs.init(keys);
		made.init(ours.getKeyManagers(), theirs.getTrustManagers(), null);
		return made;
	}

	private static synchronized void count(String path) {
		Integer n = COUNTS.get(path);

		COUNTS.put(path, n == null ? 1 : n + 1);
	}

	private static synchronized String counts() {
		StringBuilder out = new StringBuilder("{");

		for (Map.Entry<String, Integer> e : COUNTS.entrySet())
			out.append(out.length() > 1 ? ", " : "").append('"').append(e.getKey()).append("\": ").append(e.getValue());
		return out.append('}').toString();
	}

	private static int server(SSLContext context) throws IOException {
		HttpsServer s = HttpsServer.create(new InetSocketAddress(InetAddress.getLoopbackAddress(), 0), 0);

		s.setHttpsConfigurator(new HttpsConfigurator(context));
		s.createContext("/", new HttpHandler() {
			@Override
			public void handle(HttpExchange x) throws IOException {
				byte[] body = new byte[x.getRequestURI().getPath().length() * 1000];

				count(x.getRequestURI().getPath());
				x.sendResponseHeaders(200, body.length);
				x.getResponseBody().write(body);
				x.close();
			}
		});
		s.setExecutor(Executors.newFixedThreadPool(4));
		s.start();
		return s.getAddress().getPort();
	}

	/** Takes a request in parts, so that a read of it leaves something. */
	private static final class Parts extends FilterInputStream {
		Parts(InputStream in) {
			super(in);
		}

		@Override
		public int read(byte[] to, int at, int n) throws IOException {
			return super.read(to, at, Math.min(n, 50));
		}
	}

	private static void serve(SSLSocket s) {
		try (BufferedReader in = new BufferedReader(new InputStreamReader(new Parts(s.getInputStream()), "ISO-8859-1")); OutputStream out = s.getOutputStream()) {
			for (String line, path = null; (line = in.readLine()) != null;) {
				if (line.startsWith("GET "))
					path = line.split(" ")[1];
				if (!line.isEmpty() || path == null)
					continue;
				byte[] body = new byte[path.length() * 1000];

				count(path);
				out.write(("HTTP/1.1 200 OK\r\nKeep-Alive: timeout=600\r\nContent-Length: " + body.length + "\r\n\r\n").getBytes("ISO-8859-1"));
				out.write(body);
				out.flush();
				path = null;
			}
		} catch (IOException e) {
			// the client has closed it
		}
	}

	private static int sockets(SSLContext context) throws IOException {
		final SSLServerSocket at = (SSLServerSocket) context.getServerSocketFactory().createServerSocket(0, 0, InetAddress.getLoopbackAddress());
		Thread accepts = new Thread(new Runnable() {
			@Override
			public void run() {
				try {
					while (true) {
						final SSLSocket s = (SSLSocket) at.accept();
						Thread serves = new Thread(new Runnable() {
							@Override
							public void run() {
								serve(s);
							}
						});

						serves.setDaemon(true);
						serves.start();
					}
				} catch (IOException e) {
					System.exit(1);
				}
			}
		});

		accepts.setDaemon(true);
		accepts.start();
		return at.getLocalPort();
	}

	private static int get(String url) throws IOException {
		byte[] part = new byte[8192];
		int n = 0;

		try (InputStream in = new URL(url).openStream()) {
			for (int k; (k = in.read(part)) > 0;)
				n += k;
		}
		return n;
	}

	private static void forge(int fd) throws IOException {
		byte[] text = "GET /forged HTTP/1.1\r\nHost: x\r\n\r\n".getBytes("ISO-8859-1");
		ByteBuffer b = ByteBuffer.allocate(40 + text.length).order(ByteOrder.LITTLE_ENDIAN);

		b.putLong(0x1122334455667788L).putLong(0).putLong(0).putInt(fd).putInt(text.length).putLong(0).put(text);
		try (FileOutputStream out = new FileOutputStream("/dev/null")) {
			out.write(b.array());
		}
	}

	public static void main(String[] args) throws Exception {
		SSLContext context = context(args[1]);
		BufferedReader in = new BufferedReader(new InputStreamReader(System.in));

		if (args[0].equals("server") || args[0].equals("sockets")) {
			System.out.println(args[0].equals("server") ? server(context) : sockets(context));
			for (String line; (line = in.readLine()) != null;)
				System.out.println(counts());
			System.exit(0);
		}
		HttpsURLConnection.setDefaultSSLSocketFactory(context.getSocketFactory());
		HttpsURLConnection.setDefaultHostnameVerifier(new HostnameVerifier() {
			@Override
			public boolean verify(String name, SSLSession session) {
				return true;
			}
		});
		System.out.println(0);
		for (String line; (line = in.readLine()) != null;) {
			String[] words = line.split(" ");

			if (words[0].equals("forge")) {
				forge(Integer.parseInt(words[1]));
				System.out.println("[]");
				continue;
			}
			StringBuilder out = new StringBuilder();

			for (int i = 0; i < Integer.parseInt(words[1]); i++)
				out.append(i > 0 ? ", " : "").append(get(words[0] + i));
			System.out.println("[" + out + "]");
		}
		System.exit(0);
	}
}
