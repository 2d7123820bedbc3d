// SPDX-License-Identifier: Apache-2.0
// A service as Spring Boot makes one: Tomcat with HTTP/1.1 and HTTP/2 inside the JDK's TLS, and a JDBC connection to PostgreSQL. Three things are planted in it, each
// in a line that says so. For Java 17 and newer.
//   JavaTomcat KEYS FOLDER JDBC-URL; prints its port, then "done" for each line of input; "storm" in a line: a storm of collections first. FOLDER/access is its own log,
//   FOLDER/waited has of each wait in the convoy the protocol, the thread's number, when it ended (ms since 1970), and how long it was (ns).
import jakarta.servlet.http.HttpServlet;
import jakarta.servlet.http.HttpServletRequest;
import jakarta.servlet.http.HttpServletResponse;
import java.io.BufferedReader;
import java.io.File;
import java.io.FileWriter;
import java.io.IOException;
import java.io.InputStreamReader;
import java.io.PrintWriter;
import java.sql.Connection;
import java.sql.DriverManager;
import java.sql.PreparedStatement;
import java.sql.SQLException;
import org.apache.catalina.Context;
import org.apache.catalina.connector.Connector;
import org.apache.catalina.startup.Tomcat;
import org.apache.catalina.valves.AccessLogValve;
import org.apache.coyote.http2.Http2Protocol;
import org.apache.tomcat.util.net.SSLHostConfig;
import org.apache.tomcat.util.net.SSLHostConfigCertificate;

public final class JavaTomcat extends HttpServlet {
	private static final long serialVersionUID = 1;

	static final class Till {
	}

	static final Till TILL = new Till();
	static volatile Object sink;
	static Connection db;
	static PrintWriter waited;

	static void crate() {
		for (int i = 0; i < 300; i++)
			sink = new byte[20000]; // planted: allocates
	}

	static void pay(String protocol) throws InterruptedException, IOException {
		String thread = new File("/proc/thread-self").getCanonicalFile().getName();
		long t = System.nanoTime(), end;

		synchronized (TILL) { // planted: convoy
			t = System.nanoTime() - t;
			end = System.currentTimeMillis();
			Thread.sleep(15);
			waited.println(protocol + " " + thread + " " + end + " " + t);
		}
	}

	static void list() throws SQLException {
		synchronized (db) {
			try (PreparedStatement s = db.prepareStatement("SELECT pg_sleep(0.15) AS slow")) {
				s.execute();
			}
			try (PreparedStatement s = db.prepareStatement("SELECT 1 AS quick")) {
				s.execute();
			}
		}
	}

	static void storm() {
		for (int i = 0; i < 20; i++) {
			byte[][] kept = new byte[40][];

			for (int k = 0; k < 4000; k++)
				kept[k % 40] = new byte[50000]; // planted: storm
			sink = kept;
			System.gc();
		}
		sink = null;
	}

	@Override
	protected void doGet(HttpServletRequest q, HttpServletResponse a) throws IOException {
		String path = q.getRequestURI();

		try {
			if (path.startsWith("/crate"))
				crate();
			else if (path.startsWith("/pay"))
				pay(q.getProtocol());
			else if (path.startsWith("/list"))
				list();
		} catch (InterruptedException | SQLException e) {
			throw new IOException(e);
		}
		a.setContentType("text/plain");
		a.getOutputStream().print("hello");
	}

	static int serve(String keys, String folder) throws Exception {
		Tomcat t = new Tomcat();
		Connector c = new Connector();
		SSLHostConfig host = new SSLHostConfig();
		SSLHostConfigCertificate pair = new SSLHostConfigCertificate(host, SSLHostConfigCertificate.Type.RSA);
		AccessLogValve log = new AccessLogValve();

		pair.setCertificateKeystoreFile(keys);
		pair.setCertificateKeystorePassword("changeit");
		pair.setCertificateKeystoreType("PKCS12");
		host.addCertificate(pair);
		c.setPort(0);
		c.setProperty("address", "127.0.0.1");
		c.setSecure(true);
		c.setScheme("https");
		c.setProperty("SSLEnabled", "true");
		c.addSslHostConfig(host);
		c.addUpgradeProtocol(new Http2Protocol());
		t.setBaseDir(folder);
		t.setConnector(c);
		log.setDirectory(folder);
		log.setPrefix("access");
		log.setSuffix("");
		log.setRotatable(false);
		log.setBuffered(false);
		log.setPattern("%H %m %U %s");
		t.getHost().getPipeline().addValve(log);
		Context x = t.addContext("", null);
		Tomcat.addServlet(x, "all", new JavaTomcat());
		x.addServletMappingDecoded("/*", "all");
		t.start();
		return c.getLocalPort();
	}

	public static void main(String[] args) throws Exception {
		BufferedReader in = new BufferedReader(new InputStreamReader(System.in));

		db = DriverManager.getConnection(args[2]);
		waited = new PrintWriter(new FileWriter(args[1] + "/waited"), true);
		System.out.println(serve(args[0], args[1]));
		for (String line; (line = in.readLine()) != null;) {
			if (line.contains("storm"))
				storm();
			System.out.println("done");
		}
		System.exit(0);
	}
}
