/* SPDX-License-Identifier: Apache-2.0 */
/*
 * log_lines: lines as programs log them. {S} may not come out of those in the first two tables; of
 * the third nothing changes. The end-to-end test of logs writes the first two, too
 * (tests/e2e/host/test_logs_secrets.py).
 */
#ifndef SONDE_TESTS_SECRETS_LOG_LINES_H
#define SONDE_TESTS_SECRETS_LOG_LINES_H

/* clang-format off */
#define LOG_LINES_HIDDEN \
	"ERROR login of bob failed, password={S}", \
	"ERROR login of bob failed: password: {S}", \
	"ERROR headers: Authorization: Bearer {S}", \
	"ERROR headers: {'Authorization': 'Basic {S}', 'Accept': '*/*'}", \
	"ERROR headers: map[Accept:[*/*] Authorization:[Bearer {S}]]", \
	"ERROR headers: X-Vault-Token: {S}", \
	"ERROR headers: X-Api-Key={S}", \
	"ERROR headers: Cookie: theme=dark; session={S}", \
	"ERROR headers: Set-Cookie: sid={S}; Path=/; HttpOnly", \
	"WARN cannot connect to postgres://app:{S}@db:5432/shop", \
	"WARN cannot connect to amqp://guest:{S}@mq:5672/%2f", \
	"WARN cannot connect to redis://:{S}@cache:6379/0", \
	"WARN cannot connect to jdbc:postgresql://db/shop?user=app&password={S}&ssl=true", \
	"WARN cannot connect with app:{S}@tcp(db:3306)/shop", \
	"WARN cannot connect: Server=db;User Id=app;Password={S};Encrypt=true", \
	"WARN cannot connect: Server=db;Uid=app;Pwd={S};", \
	"WARN cannot connect: AccountName=a;AccountKey={S};EndpointSuffix=x", \
	"WARN cannot connect: Endpoint=sb://x/;SharedAccessKeyName=k;SharedAccessKey={S}", \
	"WARN cannot connect: host=db user=app password='{S}' dbname=shop", \
	"{\"level\":\"error\",\"msg\":\"denied\",\"token\":\"{S}\"}", \
	"{\"level\":\"error\",\"msg\":\"denied\",\"auth\":{\"apiKey\":\"{S}\"}}", \
	"{\"level\":\"error\",\"msg\":\"body was {\\\"user\\\":\\\"u\\\",\\\"password\\\":\\\"{S}\\\"}\"}", \
	"{\"level\":\"error\",\"msg\":\"password={S} was refused\"}", \
	"{\"level\":\"error\",\"error\":\"login with secret: {S}\"}", \
	"{\"level\":\"error\",\"msg\":\"x\",\"headers\":{\"cookie\":[\"sid={S}\"]}}", \
	"level=error msg=\"no login\" password={S}", \
	"level=error msg=\"no login with client_secret={S}\" user=bob", \
	"level=error msg=\"no login\" refresh_token=\"{S}\"", \
	"ERROR User(name='bob', password='{S}', age=3)", \
	"ERROR User{name=bob, password={S}, age=3}", \
	"ERROR {Name:bob Password:{S} Age:3}", \
	"ERROR &{Name:bob Token:{S}}", \
	"ERROR Config { user: \"bob\", password: \"{S}\" }", \
	"ERROR { user: 'bob', apiKey: '{S}' }", \
	"ERROR {\"user\"=>\"bob\", \"password\"=>\"{S}\"}", \
	"ERROR %{\"user\" => \"bob\", password: \"{S}\"}", \
	"ERROR [user] => bob [password] => {S}", \
	"ERROR [{user,<<\"bob\">>},{password,<<\"{S}\">>}]", \
	"ERROR {<<\"password\">>,<<\"{S}\">>}", \
	"ERROR [{user,\"bob\"},{pass,\"{S}\"}]", \
	"ERROR #{password => <<\"{S}\">>}", \
	"ERROR (:user \"bob\" :password \"{S}\")", \
	"ERROR GET /reset?token={S}&x=1 500", \
	"ERROR GET /reset?user=bob&x=1&password={S} HTTP/1.1", \
	"ERROR 10.0.0.1 - - [29/Nov/2026:18:00:00 +0000] \"GET /?access_token={S} HTTP/1.1\" 500 12 \"http://x/?sid={S}\" \"curl\"", \
	"2026/11/29 18:00:00 [error] 9#9: *1 upstream failed, request: \"POST /login?password={S} HTTP/1.1\", host: \"x\"", \
	"2026/11/29 18:00:00 [error] 9#9: *1 open() failed, request: \"GET / HTTP/1.1\", upstream: \"http://u:{S}@h/\"", \
	"ERROR body: user=bob&password={S}&remember=1", \
	"ERROR next=%2Flogin%3Fuser%3Dbob%26password%3D{S}%26x%3D1", \
	"ERROR callback https://h/cb#access_token={S}&state=1", \
	"ERROR redirect to /x;jsessionid={S}", \
	"2026-11-29 18:00:00 UTC [12] ERROR:  syntax error STATEMENT:  ALTER ROLE u PASSWORD '{S}'", \
	"2026-11-29 18:00:00 UTC [12] STATEMENT:  CREATE USER u WITH ENCRYPTED PASSWORD '{S}'", \
	"2026-11-29 18:00:00 UTC [12] DETAIL:  Key (api_token)=({S}) already exists.", \
	"2026-11-29 18:00:00 UTC [12] DETAIL:  Key (id, session_token)=(1, {S}) already exists.", \
	"2026-11-29 18:00:00 12 [ERROR] Duplicate entry '{S}' for key 'users.api_token'", \
	"ERROR 1062 (23000): Duplicate entry '{S}-1' for key 'session_token'", \
	"2026-11-29 18:00:00 12 [ERROR] near 'CREATE USER u IDENTIFIED BY '{S}'' at line 1", \
	"ERROR INSERT INTO users (name, password) VALUES ('bob', '{S}')", \
	"ERROR UPDATE users SET token = '{S}' WHERE id = 1", \
	"ERROR CREATE USER u IDENTIFIED WITH sha256_password BY '{S}'", \
	"1795975200.1 [0 127.0.0.1:1] \"AUTH\" \"app\" \"{S}\"", \
	"1795975200.1 [0 127.0.0.1:1] \"AUTH\" \"{S}\"", \
	"1795975200.1 [0 127.0.0.1:1] \"CONFIG\" \"SET\" \"requirepass\" \"{S}\"", \
	"1795975200.1 [0 127.0.0.1:1] \"ACL\" \"SETUSER\" \"u\" \"on\" \">{S}\"", \
	"1795975200.1 [0 127.0.0.1:1] \"HELLO\" \"3\" \"AUTH\" \"app\" \"{S}\"", \
	"sudo: bob : TTY=pts/0 ; PWD=/ ; USER=root ; COMMAND=/usr/bin/mysql -u root -p{S} db", \
	"CRON[7]: (root) CMD (curl -s -u u:{S} http://x)", \
	"+ curl -H 'Authorization: Bearer {S}' http://x", \
	"+ export DB_PASSWORD={S}", \
	"ERROR exec failed: mysqldump --password={S} shop", \
	"ERROR exec failed: [\"sh\", \"-c\", \"mysql -p{S} shop\"]", \
	"ERROR exec failed: ['mysql', '--password', '{S}']", \
	"ERROR environment: PATH=/bin MYSQL_ROOT_PASSWORD={S} HOME=/root", \
	"ERROR environment: {\"PATH\": \"/bin\", \"STRIPE_KEY\": \"{S}\"}", \
	"ERROR spring.datasource.password={S}", \
	"ERROR aws_secret_access_key = {S}", \
	"ERROR PrivateKey = {S}", \
	"ERROR <soap:Body><wsse:Password Type=\"t\">{S}</wsse:Password></soap:Body>", \
	"ERROR otpauth://totp/x?secret={S}&issuer=y", \
	"ERROR webhook https://hooks.slack.com/services/T0/B0/{S} refused", \
	"ERROR webhook https://discord.com/api/webhooks/123/{S} refused", \
	"ERROR generated root password: {S}", \
	"WARN Using generated security password: {S}", \
	"ERROR pin=1 otp={S}", \
	"ERROR x-amz-security-token:{S}", \
	"ERROR session_id={S}", \
	"ERROR PHPSESSID={S}", \
	"ERROR csrf_token: {S}", \
	"ERROR password=\t{S}", \
	"ERROR password = \"two words {S}\"", \
	"ERROR password:\n  {S}", \
	"ERROR Passwort={S}", \
	"ERROR PASSWORD={S}", \
	"ERROR proxy http://u:{S}@proxy:3128 refused"

/* of a secret that is no word: with digits, or a mark inside */
#define LOG_LINES_HIDDEN_MIXED \
	"ERROR passphrase for key: {S}", \
	"ERROR new password for bob: {S}", \
	"[Note] A temporary password is generated for root@localhost: {S}", \
	"ERROR login of bob failed (password '{S}')", \
	"ERROR login of bob failed with password \"{S}\"", \
	"Sun Nov 29 18:00:00 2026 [pid 2] FTP command: Client \"10.0.0.1\", \"PASS {S}\"", \
	"ERROR client sent: PASS {S}", \
	"ERROR client sent: AUTH PLAIN {S}", \
	"ERROR client sent: a1 LOGIN bob {S}", \
	"ERROR your password is {S}", \
	"ERROR the token is: {S}", \
	"ERROR initialAdminPassword {S}"

#define LOG_LINES_KEPT \
	"ERROR password authentication failed for user \"bob\"", \
	"FATAL:  password authentication failed for user \"bob\"", \
	"[Warning] Access denied for user 'bob'@'localhost' (using password: YES)", \
	"sshd[7]: Accepted password for bob from 10.0.0.1 port 22 ssh2", \
	"sshd[7]: Failed password for invalid user bob from 10.0.0.1 port 22 ssh2", \
	"sshd[7]: pam_unix(sshd:auth): authentication failure; logname= uid=0 euid=0 tty=ssh ruser= rhost=10.0.0.1", \
	"WRONGPASS invalid username-password pair or user is disabled.", \
	"ERROR the password is too short", \
	"ERROR the token is expired", \
	"ERROR no password was given", \
	"ERROR your password is wrong", \
	"ERROR invalid token at line 3", \
	"ERROR unexpected token } in JSON at position 4", \
	"ERROR the secret was not found", \
	"ERROR syntax error at or near \"SELEKT\" at character 1", \
	"ERROR relation \"tokens\" does not exist at character 15", \
	"ERROR 1062 (23000): Duplicate entry 'bob' for key 'users.name'", \
	"DETAIL:  Key (id)=(1) already exists.", \
	"ERROR cannot read /run/secrets/db: permission denied", \
	"ERROR GET /password/reset 500", \
	"ERROR certificate verify failed: unable to get local issuer certificate", \
	"INFO session opened for user root(uid=0) by (uid=0)", \
	"ERROR pass 3 of 4 failed", \
	"ERROR test 4 did not PASS", \
	"ERROR login bob failed", \
	"ERROR lock wait timeout exceeded; try restarting transaction"
/* clang-format on */

#endif
