// SPDX-License-Identifier: Apache-2.0
// The client of Java 11 and newer (java.net.http), which speaks HTTP/2 inside TLS where the server does: its SSLEngine works on other threads
// than those that read and write the socket.
//   JavaTls2 KEYS; lines of standard input: URL N          as those of JavaTls; also prints the version that was spoken: ["HTTP_2", bytes...]
import java.io.BufferedReader;
import java.io.FileInputStream;
import java.io.InputStream;
import java.io.InputStreamReader;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.security.KeyStore;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import javax.net.ssl.SSLContext;
import javax.net.ssl.TrustManagerFactory;

public final class JavaTls2 {
	private JavaTls2() {
	}

	private static SSLContext context(String file) throws Exception {
		KeyStore keys = KeyStore.getInstance("PKCS12");
		TrustManagerFactory theirs = TrustManagerFactory.getInstance(TrustManagerFactory.getDefaultAlgorithm());
		SSLContext made = SSLContext.getInstance("TLS");

		try (InputStream in = new FileInputStream(file)) {
			keys.load(in, "changeit".toCharArray());
		}
		theirs.init(keys);
		made.init(null, theirs.getTrustManagers(), null);
		return made;
	}

	public static void main(String[] args) throws Exception {
		HttpClient client = HttpClient.newBuilder().sslContext(context(args[0])).build();
		BufferedReader in = new BufferedReader(new InputStreamReader(System.in));

		System.out.println(0);
		for (String line; (line = in.readLine()) != null;) {
			String[] words = line.split(" ");
			List<CompletableFuture<HttpResponse<byte[]>>> asked = new ArrayList<>();
			StringBuilder out = new StringBuilder("[");

			for (int i = 0; i < Integer.parseInt(words[1]); i++)
				asked.add(client.sendAsync(HttpRequest.newBuilder(URI.create(words[0] + i)).build(), HttpResponse.BodyHandlers.ofByteArray()));
			for (CompletableFuture<HttpResponse<byte[]>> a : asked)
				out.append(out.length() > 1 ? ", " : "\"" + a.join().version() + "\", ").append(a.join().body().length);
			System.out.println(out + "]");
		}
		System.exit(0);
	}
}
