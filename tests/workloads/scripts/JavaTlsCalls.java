// SPDX-License-Identifier: Apache-2.0
// What a call of the JDK's TLS costs: two ends of one connection in one program, for Java 8 and newer.
//   JavaTlsCalls KEYS; lines of standard input: HOW N BYTES; prints {"calls": reads and writes, "cpu_ns": of the program}
// HOW is socket (SSLSocket over loopback) or engine (two SSLEngines over a Pipe's ends, one after another in one thread).
import java.io.BufferedReader;
import java.io.FileInputStream;
import java.io.IOException;
import java.io.InputStream;
import java.io.InputStreamReader;
import java.io.OutputStream;
import java.lang.management.ManagementFactory;
import java.net.InetAddress;
import java.nio.ByteBuffer;
import java.nio.channels.ServerSocketChannel;
import java.nio.channels.SocketChannel;
import java.security.KeyStore;
import javax.net.ssl.KeyManagerFactory;
import javax.net.ssl.SSLContext;
import javax.net.ssl.SSLEngine;
import javax.net.ssl.SSLEngineResult;
import javax.net.ssl.SSLServerSocket;
import javax.net.ssl.SSLSocket;
import javax.net.ssl.TrustManagerFactory;

public final class JavaTlsCalls {
	private static SSLContext context;

	private JavaTlsCalls() {
	}

	private static long cpu() {
		return ((com.sun.management.OperatingSystemMXBean) ManagementFactory.getOperatingSystemMXBean()).getProcessCpuTime();
	}

	private static void full(InputStream in, byte[] to) throws IOException {
		for (int at = 0, n; at < to.length; at += n)
			if ((n = in.read(to, at, to.length - at)) < 0)
				throw new IOException("ended");
	}

	/* ---- sockets: an echo ---- */

	private static SSLSocket socket;

	private static void begin() throws Exception {
		final SSLServerSocket at = (SSLServerSocket) context.getServerSocketFactory().createServerSocket(0, 0, InetAddress.getLoopbackAddress());
		Thread echo = new Thread(new Runnable() {
			@Override
			public void run() {
				byte[] b = new byte[16384];

				try (SSLSocket s = (SSLSocket) at.accept()) {
					for (int n; (n = s.getInputStream().read(b)) > 0;)
						s.getOutputStream().write(b, 0, n);
				} catch (IOException e) {
					// the other end has closed it
				}
			}
		});

		echo.setDaemon(true);
		echo.start();
		socket = (SSLSocket) context.getSocketFactory().createSocket(InetAddress.getLoopbackAddress(), at.getLocalPort());
		socket.startHandshake();
	}

	private static void sockets(int n, byte[] text) throws IOException {
		OutputStream out = socket.getOutputStream();
		InputStream in = socket.getInputStream();

		for (int i = 0; i < n; i++) {
			out.write(text);
			full(in, text);
		}
	}

	/* ---- engines: one writes, the other reads ---- */

	private static SSLEngine[] ends;
	private static SocketChannel[] channels;

	private static void engines() throws Exception {
		ServerSocketChannel at = ServerSocketChannel.open().bind(new java.net.InetSocketAddress(InetAddress.getLoopbackAddress(), 0));

		channels = new SocketChannel[] {SocketChannel.open(at.getLocalAddress()), at.accept()};
		ends = new SSLEngine[] {context.createSSLEngine("localhost", 1), context.createSSLEngine()};
		ends[0].setUseClientMode(true);
		ends[1].setUseClientMode(false);
		channels[0].configureBlocking(false);
		channels[1].configureBlocking(false);
	}

	private final static ByteBuffer[] CAME = {ByteBuffer.allocate(65536), ByteBuffer.allocate(65536)};
	private final static ByteBuffer MADE = ByteBuffer.allocate(65536), TEXT = ByteBuffer.allocate(65536);

	/** Writes what there is to write, reads what has come; how many bytes of text came. */
	private static int turn(int end, ByteBuffer text) throws IOException {
		int got = 0;
		boolean again = true;

		while (again) {
			SSLEngineResult r;

			again = false;
			for (Runnable task; (task = ends[end].getDelegatedTask()) != null;)
				task.run();
			MADE.clear();
			r = ends[end].wrap(text, MADE);
			MADE.flip();
			again |= MADE.hasRemaining();
			while (MADE.hasRemaining())
				channels[end].write(MADE);
			channels[end].read(CAME[end]);
			CAME[end].flip();
			while (CAME[end].hasRemaining()) {
				TEXT.clear();
				r = ends[end].unwrap(CAME[end], TEXT);
				got += r.bytesProduced();
				if (r.bytesConsumed() == 0)
					break;
				again = true;
			}
			CAME[end].compact();
			again |= ends[end].getHandshakeStatus() == SSLEngineResult.HandshakeStatus.NEED_TASK;
		}
		return got;
	}

	private static void engines(int n, byte[] text) throws IOException {
		for (int i = 0; i < n; i++) {
			ByteBuffer b = ByteBuffer.wrap(text), none = ByteBuffer.allocate(0);

			for (int got = 0; got < text.length || b.hasRemaining();) {
				turn(0, b);
				got += turn(1, none);
			}
		}
	}

	public static void main(String[] args) throws Exception {
		char[] word = "changeit".toCharArray();
		KeyStore keys = KeyStore.getInstance("PKCS12");
		KeyManagerFactory ours = KeyManagerFactory.getInstance(KeyManagerFactory.getDefaultAlgorithm());
		TrustManagerFactory theirs = TrustManagerFactory.getInstance(TrustManagerFactory.getDefaultAlgorithm());
		BufferedReader in = new BufferedReader(new InputStreamReader(System.in));

		try (InputStream file = new FileInputStream(args[0])) {
			keys.load(file, word);
		}
		ours.init(keys, word);
		theirs.init(keys);
		context = SSLContext.getInstance("TLS");
		context.init(ours.getKeyManagers(), theirs.getTrustManagers(), null);
		begin();
		engines();
		System.out.println(0);
		for (String line; (line = in.readLine()) != null;) {
			String[] words = line.split(" ");
			int n = Integer.parseInt(words[1]), calls = words[0].equals("socket") ? 4 * n : 2 * n;
			byte[] text = new byte[Integer.parseInt(words[2])];
			long before;

			text[0] = 'x';
			before = cpu();
			if (words[0].equals("socket"))
				sockets(n, text);
			else
				engines(n, text);
			System.out.println("{\"calls\": " + calls + ", \"cpu_ns\": " + (cpu() - before) + "}");
		}
		System.exit(0);
	}
}
