// SPDX-License-Identifier: Apache-2.0
// Jetty with HTTP/1.1 and HTTP/2 inside the JDK's TLS. For Java 17 and newer.
//   JavaJetty KEYS FOLDER; prints its port, then "done" for each line of input. FOLDER/access is its own log.
import java.io.BufferedReader;
import java.io.InputStreamReader;
import org.eclipse.jetty.alpn.server.ALPNServerConnectionFactory;
import org.eclipse.jetty.http2.server.HTTP2ServerConnectionFactory;
import org.eclipse.jetty.io.Content;
import org.eclipse.jetty.server.CustomRequestLog;
import org.eclipse.jetty.server.Handler;
import org.eclipse.jetty.server.HttpConfiguration;
import org.eclipse.jetty.server.HttpConnectionFactory;
import org.eclipse.jetty.server.Request;
import org.eclipse.jetty.server.Response;
import org.eclipse.jetty.server.SecureRequestCustomizer;
import org.eclipse.jetty.server.Server;
import org.eclipse.jetty.server.ServerConnector;
import org.eclipse.jetty.server.SslConnectionFactory;
import org.eclipse.jetty.util.Callback;
import org.eclipse.jetty.util.ssl.SslContextFactory;

public final class JavaJetty {
	private JavaJetty() {
	}

	public static void main(String[] args) throws Exception {
		BufferedReader in = new BufferedReader(new InputStreamReader(System.in));
		Server server = new Server();
		HttpConfiguration how = new HttpConfiguration();
		SslContextFactory.Server tls = new SslContextFactory.Server();
		ALPNServerConnectionFactory alpn = new ALPNServerConnectionFactory();

		how.addCustomizer(new SecureRequestCustomizer(false));
		tls.setKeyStorePath(args[0]);
		tls.setKeyStorePassword("changeit");
		alpn.setDefaultProtocol("http/1.1");
		ServerConnector at = new ServerConnector(server, new SslConnectionFactory(tls, "alpn"), alpn, new HTTP2ServerConnectionFactory(how),
				new HttpConnectionFactory(how));
		at.setHost("127.0.0.1");
		server.addConnector(at);
		server.setHandler(new Handler.Abstract() {
			@Override
			public boolean handle(Request q, Response a, Callback done) {
				a.setStatus(200);
				Content.Sink.write(a, true, "hello", done);
				return true;
			}
		});
		server.setRequestLog(new CustomRequestLog(args[1] + "/access", "%H %m %U %s"));
		server.start();
		System.out.println(at.getLocalPort());
		while (in.readLine() != null)
			System.out.println("done");
		System.exit(0);
	}
}
