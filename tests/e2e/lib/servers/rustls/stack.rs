// SPDX-License-Identifier: Apache-2.0
//! What people build on rustls: axum and reqwest, which speak HTTP, and sqlx, which asks PostgreSQL
//! and MySQL.
//!
//! stack server CERT KEY            axum behind axum-server; prints its port; every third answer has
//!                                  40000 bytes
//! stack client h1|h2 CA PORT N     reqwest: N requests on one connection for the path that standard
//!                                  input says, every fourth with 20000 bytes; prints how many were
//!                                  answered
//! stack sql CA PORT N              sqlx: N statements on one connection to PostgreSQL; the same
//! stack mysql CA PORT N            the same to MySQL
//! Certificates and the key are files in PEM.
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::sync::Arc;

use axum::body::Bytes;
use axum::Router;
use sqlx::mysql::{MySqlConnectOptions, MySqlSslMode};
use sqlx::postgres::{PgConnectOptions, PgSslMode};
use sqlx::{ConnectOptions, Connection};

type Outcome<T> = Result<T, Box<dyn std::error::Error + Send + Sync>>;

async fn serve(cert: &str, key: &str) -> Outcome<()> {
    let config = axum_server::tls_rustls::RustlsConfig::from_pem_file(cert, key).await?;
    let listener = std::net::TcpListener::bind("127.0.0.1:0")?;
    listener.set_nonblocking(true)?;
    let count = Arc::new(AtomicUsize::new(0));
    let answer = move |_: Bytes| {
        let n = 1 + count.fetch_add(1, SeqCst);
        async move { if n % 3 == 0 { vec![b'x'; 40000] } else { b"hello".to_vec() } }
    };
    println!("{}", listener.local_addr()?.port());
    axum_server::from_tcp_rustls(listener, config)
        .serve(Router::new().fallback(answer).into_make_service())
        .await?;
    Ok(())
}

async fn ask(how: &str, ca: &str, port: &str, n: usize, path: &str) -> Outcome<usize> {
    let root = reqwest::Certificate::from_pem(&std::fs::read(ca)?)?;
    let builder = reqwest::Client::builder().add_root_certificate(root);
    let client = if how == "h1" { builder.http1_only() } else { builder }.build()?;
    let mut good = 0;
    for i in 0..n {
        let body = if i % 4 == 3 { vec![b'y'; 20000] } else { Vec::new() };
        let url = format!("https://localhost:{port}{path}");
        let request = if body.is_empty() { client.get(url) } else { client.post(url).body(body) };
        let answer = request.header("authorization", "Bearer planted-in-a-header").send().await?;
        let version = if how == "h1" { reqwest::Version::HTTP_11 } else { reqwest::Version::HTTP_2 };
        good += (answer.version() == version && answer.status() == 200 && !answer.bytes().await?.is_empty()) as usize;
    }
    Ok(good)
}

async fn query(ca: &str, port: &str, n: usize) -> Outcome<usize> {
    let mut connection = PgConnectOptions::new()
        .host("localhost")
        .port(port.parse()?)
        .username("postgres")
        .database("postgres")
        .ssl_mode(PgSslMode::VerifyFull)
        .ssl_root_cert(ca)
        .connect()
        .await?;
    let mut good = 0;
    for i in 0..n {
        let got: i32 = sqlx::query_scalar("SELECT $1 + 1").bind(i as i32).fetch_one(&mut connection).await?;
        good += (got == i as i32 + 1) as usize;
    }
    connection.close().await?;
    Ok(good)
}

async fn query_mysql(ca: &str, port: &str, n: usize) -> Outcome<usize> {
    let mut connection = MySqlConnectOptions::new()
        .host("127.0.0.1")
        .port(port.parse()?)
        .username("root")
        .ssl_mode(MySqlSslMode::VerifyCa)
        .ssl_ca(ca)
        .connect()
        .await?;
    let mut good = 0;
    for i in 0..n {
        let got: i64 = sqlx::query_scalar("SELECT ? + 1").bind(i as i64).fetch_one(&mut connection).await?;
        good += (got == i as i64 + 1) as usize;
    }
    connection.close().await?;
    Ok(good)
}

fn main() -> Outcome<()> {
    let args: Vec<String> = std::env::args().collect();
    let a: Vec<&str> = args.iter().map(|s| s.as_str()).collect();
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
    rustls::crypto::ring::default_provider().install_default().ok();
    if let ["server", cert, key] = a[1..] {
        return runtime.block_on(serve(cert, key));
    }
    let mut path = String::new();
    std::io::stdin().read_line(&mut path)?; // waits until the probes are there
    let good = match a[1..] {
        ["client", how, ca, port, n] => runtime.block_on(ask(how, ca, port, n.parse()?, path.trim()))?,
        ["sql", ca, port, n] => runtime.block_on(query(ca, port, n.parse()?))?,
        ["mysql", ca, port, n] => runtime.block_on(query_mysql(ca, port, n.parse()?))?,
        _ => return Err("stack server|client|sql|mysql ...".into()),
    };
    println!("{good}");
    Ok(())
}
