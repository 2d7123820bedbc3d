// SPDX-License-Identifier: Apache-2.0
//! HTTP inside rustls, by programs that know how often. One source for five versions of rustls: the
//! features old (0.20, 0.21) and new (0.22 and later) say how its configurations are made.
//!
//! talk server h1|h2|sync CERT KEY      prints its port; every third answer has 40000 bytes
//! talk client h1|h2|sync CA PORT N     N requests on one connection for the path that standard
//!                                      input says, every fourth with 20000 bytes; prints how many
//!                                      were answered
//! Certificates and the key are files in DER.
use std::fs::read;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::Arc;

use bytes::Bytes;
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper::{Request, Response};
use hyper_util::rt::{TokioExecutor, TokioIo};
use tokio_rustls::rustls;
use tokio_rustls::{TlsAcceptor, TlsConnector};

#[cfg(feature = "old")]
mod config {
    use super::*;
    pub fn server(cert: &str, key: &str) -> rustls::ServerConfig {
        rustls::ServerConfig::builder()
            .with_safe_defaults()
            .with_no_client_auth()
            .with_single_cert(
                vec![rustls::Certificate(read(cert).unwrap())],
                rustls::PrivateKey(read(key).unwrap()),
            )
            .unwrap()
    }
    pub fn client(ca: &str) -> rustls::ClientConfig {
        let mut roots = rustls::RootCertStore::empty();
        roots.add(&rustls::Certificate(read(ca).unwrap())).unwrap();
        rustls::ClientConfig::builder()
            .with_safe_defaults()
            .with_root_certificates(roots)
            .with_no_client_auth()
    }
    pub fn name() -> rustls::ServerName {
        rustls::ServerName::try_from("localhost").unwrap()
    }
}

#[cfg(feature = "new")]
mod config {
    use super::*;
    use rustls::pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer, ServerName};
    pub fn server(cert: &str, key: &str) -> rustls::ServerConfig {
        rustls::ServerConfig::builder()
            .with_no_client_auth()
            .with_single_cert(
                vec![CertificateDer::from(read(cert).unwrap())],
                PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(read(key).unwrap())),
            )
            .unwrap()
    }
    pub fn client(ca: &str) -> rustls::ClientConfig {
        let mut roots = rustls::RootCertStore::empty();
        roots.add(CertificateDer::from(read(ca).unwrap())).unwrap();
        rustls::ClientConfig::builder()
            .with_root_certificates(roots)
            .with_no_client_auth()
    }
    pub fn name() -> ServerName<'static> {
        ServerName::try_from("localhost").unwrap()
    }
}

type Outcome<T> = Result<T, Box<dyn std::error::Error + Send + Sync>>;

fn large(n: usize) -> bool {
    n % 3 == 0
}

/* ---- hyper ---- */

async fn answer(
    request: Request<Incoming>,
    count: Arc<std::sync::atomic::AtomicUsize>,
) -> Outcome<Response<Full<Bytes>>> {
    let n = 1 + count.fetch_add(1, std::sync::atomic::Ordering::SeqCst);
    request.into_body().collect().await?;
    let body = if large(n) { vec![b'x'; 40000] } else { b"hello".to_vec() };
    Ok(Response::new(Full::new(Bytes::from(body))))
}

async fn serve_one(tcp: tokio::net::TcpStream, acceptor: TlsAcceptor, h2: bool) -> Outcome<()> {
    let tls = TokioIo::new(acceptor.accept(tcp).await?);
    let count = Arc::new(std::sync::atomic::AtomicUsize::new(0));
    let service = service_fn(move |request| answer(request, count.clone()));
    if h2 {
        hyper::server::conn::http2::Builder::new(TokioExecutor::new())
            .serve_connection(tls, service)
            .await?;
    } else {
        hyper::server::conn::http1::Builder::new()
            .serve_connection(tls, service)
            .await?;
    }
    Ok(())
}

async fn serve(cert: &str, key: &str, h2: bool) -> Outcome<()> {
    let acceptor = TlsAcceptor::from(Arc::new(config::server(cert, key)));
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await?;
    println!("{}", listener.local_addr()?.port());
    loop {
        let (tcp, _) = listener.accept().await?;
        tcp.set_nodelay(true)?;
        let acceptor = acceptor.clone();
        tokio::spawn(async move {
            if let Err(e) = serve_one(tcp, acceptor, h2).await {
                eprintln!("{e}");
            }
        });
    }
}

fn request(i: usize, port: &str, path: &str, h2: bool) -> Request<Full<Bytes>> {
    let whole = if h2 { format!("https://localhost:{port}{path}") } else { path.to_string() };
    let body = if i % 4 == 3 { vec![b'y'; 20000] } else { Vec::new() };
    Request::builder()
        .method(if body.is_empty() { "GET" } else { "POST" })
        .uri(whole)
        .header("host", format!("localhost:{port}"))
        .header("authorization", "Bearer planted-in-a-header")
        .body(Full::new(Bytes::from(body)))
        .unwrap()
}

async fn ask(ca: &str, port: &str, n: usize, path: &str, h2: bool) -> Outcome<usize> {
    let tcp = tokio::net::TcpStream::connect(format!("127.0.0.1:{port}")).await?;
    tcp.set_nodelay(true)?;
    let connector = TlsConnector::from(Arc::new(config::client(ca)));
    let tls = TokioIo::new(connector.connect(config::name(), tcp).await?);
    let mut good = 0;
    if h2 {
        let (mut sender, conn) =
            hyper::client::conn::http2::handshake(TokioExecutor::new(), tls).await?;
        tokio::spawn(conn);
        for i in 0..n {
            let answer = sender.send_request(request(i, port, path, true)).await?;
            good += (answer.status() == 200 && !answer.into_body().collect().await?.to_bytes().is_empty()) as usize;
        }
    } else {
        let (mut sender, conn) = hyper::client::conn::http1::handshake(tls).await?;
        tokio::spawn(conn);
        for i in 0..n {
            sender.ready().await?;
            let answer = sender.send_request(request(i, port, path, false)).await?;
            good += (answer.status() == 200 && !answer.into_body().collect().await?.to_bytes().is_empty()) as usize;
        }
    }
    Ok(good)
}

/* ---- without a runtime ---- */

/* Reads one message: its head, and as much as Content-Length says. false: the end. */
fn message(stream: &mut impl Read) -> Outcome<bool> {
    let (mut head, mut byte) = (Vec::new(), [0u8; 1]);
    while !head.ends_with(b"\r\n\r\n") {
        if stream.read(&mut byte)? == 0 {
            return Ok(false);
        }
        head.push(byte[0]);
    }
    let text = String::from_utf8(head)?.to_lowercase();
    let length = text
        .split("content-length: ")
        .nth(1)
        .map_or(0, |s| s.split("\r\n").next().unwrap().parse().unwrap());
    stream.read_exact(&mut vec![0u8; length])?;
    Ok(true)
}

fn serve_sync(cert: &str, key: &str) -> Outcome<()> {
    let config = Arc::new(config::server(cert, key));
    let listener = TcpListener::bind("127.0.0.1:0")?;
    println!("{}", listener.local_addr()?.port());
    for tcp in listener.incoming() {
        let (tcp, config) = (tcp?, config.clone());
        tcp.set_nodelay(true)?;
        std::thread::spawn(move || -> Outcome<()> {
            let mut tls = rustls::StreamOwned::new(rustls::ServerConnection::new(config)?, tcp);
            let mut n = 0;
            while message(&mut tls)? {
                n += 1;
                let body = if large(n) { vec![b'x'; 40000] } else { b"hello".to_vec() };
                write!(tls, "HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n", body.len())?;
                tls.write_all(&body)?;
            }
            Ok(())
        });
    }
    Ok(())
}

fn ask_sync(ca: &str, port: &str, n: usize, path: &str) -> Outcome<usize> {
    let tcp = TcpStream::connect(format!("127.0.0.1:{port}"))?;
    tcp.set_nodelay(true)?;
    let conn = rustls::ClientConnection::new(Arc::new(config::client(ca)), config::name())?;
    let mut tls = rustls::StreamOwned::new(conn, tcp);
    let mut good = 0;
    for i in 0..n {
        let body = if i % 4 == 3 { vec![b'y'; 20000] } else { Vec::new() };
        let method = if body.is_empty() { "GET" } else { "POST" };
        tls.write_all(format!("{method} {path} HTTP/1.1\r\nHost: localhost:{port}\r\nAuthorization: Bearer planted-in-a-header\r\nContent-Length: {}\r\n\r\n", body.len()).as_bytes())?;
        tls.write_all(&body)?;
        good += message(&mut tls)? as usize;
    }
    Ok(good)
}

fn main() -> Outcome<()> {
    let args: Vec<String> = std::env::args().collect();
    let a: Vec<&str> = args.iter().map(|s| s.as_str()).collect();
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
    match a[1..] {
        ["server", "sync", cert, key] => serve_sync(cert, key),
        ["server", how, cert, key] => runtime.block_on(serve(cert, key, how == "h2")),
        ["client", how, ca, port, n] => {
            let mut path = String::new();
            std::io::stdin().read_line(&mut path)?;
            let (n, path) = (n.parse()?, path.trim());
            let good = match how {
                "sync" => ask_sync(ca, port, n, path)?,
                _ => runtime.block_on(ask(ca, port, n, path, how == "h2"))?,
            };
            println!("{good}");
            Ok(())
        }
        _ => Err("talk server|client h1|h2|sync ...".into()),
    }
}
