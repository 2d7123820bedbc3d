// SPDX-License-Identifier: Apache-2.0
// Netty with HTTP/1.1 and HTTP/2 inside TLS, by the JDK's engine or by its own library, which has BoringSSL in it and is unpacked to a file that is removed once it
// is loaded. For Java 17 and newer.
//   JavaNetty CERTIFICATE KEY FOLDER openssl|jdk; prints its port, ends with its input. FOLDER/access is its own log: a line for each request.
import io.netty.bootstrap.ServerBootstrap;
import io.netty.buffer.Unpooled;
import io.netty.channel.Channel;
import io.netty.channel.ChannelHandlerContext;
import io.netty.channel.ChannelInitializer;
import io.netty.channel.ChannelFutureListener;
import io.netty.channel.SimpleChannelInboundHandler;
import io.netty.channel.nio.NioEventLoopGroup;
import io.netty.channel.socket.nio.NioServerSocketChannel;
import io.netty.handler.codec.http.DefaultFullHttpResponse;
import io.netty.handler.codec.http.FullHttpRequest;
import io.netty.handler.codec.http.FullHttpResponse;
import io.netty.handler.codec.http.HttpHeaderNames;
import io.netty.handler.codec.http.HttpObjectAggregator;
import io.netty.handler.codec.http.HttpResponseStatus;
import io.netty.handler.codec.http.HttpServerCodec;
import io.netty.handler.codec.http.HttpUtil;
import io.netty.handler.codec.http.HttpVersion;
import io.netty.handler.codec.http2.Http2FrameCodecBuilder;
import io.netty.handler.codec.http2.Http2MultiplexHandler;
import io.netty.handler.codec.http2.Http2StreamFrameToHttpObjectCodec;
import io.netty.handler.ssl.ApplicationProtocolConfig;
import io.netty.handler.ssl.ApplicationProtocolNames;
import io.netty.handler.ssl.ApplicationProtocolNegotiationHandler;
import io.netty.handler.ssl.SslContext;
import io.netty.handler.ssl.SslContextBuilder;
import io.netty.handler.ssl.SslProvider;
import java.io.File;
import java.io.FileOutputStream;
import java.io.IOException;
import java.net.InetSocketAddress;
import java.nio.charset.StandardCharsets;

public final class JavaNetty {
	private static FileOutputStream log;

	private JavaNetty() {
	}

	/** `version`: as it is logged. */
	private static final class Answers extends SimpleChannelInboundHandler<FullHttpRequest> {
		private final String version;

		Answers(String version) {
			this.version = version;
		}

		@Override
		protected void channelRead0(ChannelHandlerContext c, FullHttpRequest q) throws IOException {
			FullHttpResponse a = new DefaultFullHttpResponse(HttpVersion.HTTP_1_1, q.uri().startsWith("/none") ? HttpResponseStatus.NOT_FOUND : HttpResponseStatus.OK,
					Unpooled.copiedBuffer("hello", StandardCharsets.US_ASCII));

			a.headers().set(HttpHeaderNames.CONTENT_LENGTH, 5);
			synchronized (log) {
				log.write((version + " " + q.method() + " " + q.uri() + " " + a.status().code() + "\n").getBytes(StandardCharsets.US_ASCII));
			}
			if (version.startsWith("HTTP/2") || HttpUtil.isKeepAlive(q))
				c.writeAndFlush(a);
			else
				c.writeAndFlush(a).addListener(ChannelFutureListener.CLOSE);
		}
	}

	private static final class Negotiated extends ApplicationProtocolNegotiationHandler {
		Negotiated() {
			super(ApplicationProtocolNames.HTTP_1_1);
		}

		@Override
		protected void configurePipeline(ChannelHandlerContext c, String protocol) {
			if (!protocol.equals(ApplicationProtocolNames.HTTP_2)) {
				c.pipeline().addLast(new HttpServerCodec(), new HttpObjectAggregator(65536), new Answers("HTTP/1.1"));
				return;
			}
			c.pipeline().addLast(Http2FrameCodecBuilder.forServer().build(), new Http2MultiplexHandler(new ChannelInitializer<Channel>() {
				@Override
				protected void initChannel(Channel stream) {
					stream.pipeline().addLast(new Http2StreamFrameToHttpObjectCodec(true), new HttpObjectAggregator(65536), new Answers("HTTP/2.0"));
				}
			}));
		}
	}

	public static void main(String[] args) throws Exception {
		SslContext tls = SslContextBuilder.forServer(new File(args[0]), new File(args[1])).sslProvider(args[3].equals("jdk") ? SslProvider.JDK : SslProvider.OPENSSL)
				.applicationProtocolConfig(new ApplicationProtocolConfig(ApplicationProtocolConfig.Protocol.ALPN,
						ApplicationProtocolConfig.SelectorFailureBehavior.NO_ADVERTISE, ApplicationProtocolConfig.SelectedListenerFailureBehavior.ACCEPT,
						ApplicationProtocolNames.HTTP_2, ApplicationProtocolNames.HTTP_1_1))
				.build();
		NioEventLoopGroup loops = new NioEventLoopGroup(3);
		Channel at;

		log = new FileOutputStream(args[2] + "/access");
		at = new ServerBootstrap().group(loops).channel(NioServerSocketChannel.class).childHandler(new ChannelInitializer<Channel>() {
			@Override
			protected void initChannel(Channel c) {
				c.pipeline().addLast(tls.newHandler(c.alloc()), new Negotiated());
			}
		}).bind("127.0.0.1", 0).sync().channel();
		System.out.println(((InetSocketAddress) at.localAddress()).getPort());
		while (System.in.read() >= 0)
			continue;
		System.exit(0);
	}
}
