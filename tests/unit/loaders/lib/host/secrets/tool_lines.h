/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tool_lines: more lines for secrets_test: what each tool's manual says that it takes on its
 * command line. The same form: '^' separates arguments, {S} is a secret.
 */
#ifndef SONDE_TESTS_SECRETS_TOOL_LINES_H
#define SONDE_TESTS_SECRETS_TOOL_LINES_H

/* clang-format off */
#define TOOL_LINES_HIDDEN \
	/* HTTP */ \
	"curl^--aws-sigv4^aws:amz:r:s3^-u^AK:{S}^x", \
	"curl^--socks5^u:{S}@h:1080^x", \
	"curl^--preproxy^socks5://u:{S}@h^x", \
	"curl^--proxy-header^Authorization: Basic {S}^x", \
	"curl^--form-string^token={S}^x", \
	"curl^-d^<wsse:Password Type=\"PasswordText\">{S}</wsse:Password>^x", \
	"curl^-d^<password><![CDATA[{S}]]></password>^x", \
	"curl^-d^<entry key=\"password\">{S}</entry>^x", \
	"curl^-d^<member><name>password</name><value>{S}</value></member>^x", \
	"curl^-d^{\"env\":[{\"name\":\"DB_PASSWORD\",\"value\":\"{S}\"}]}^x", \
	"curl^-d^{\"key\":\"api_token\",\"value\":\"{S}\"}^x", \
	"wget^--post-data=user=u&password={S}^x", \
	"wget^--post-data^pass={S}^x", \
	"wget^--header^Cookie: a={S}^x", \
	"wget^--body-data=token={S}^x", \
	"http^--auth=u:{S}^x", \
	"http^-A^bearer^-a^{S}^x", \
	"http^--auth-type=bearer^--auth^{S}^x", \
	"xh^--bearer^{S}^x", \
	"wrk^-H^Authorization: Bearer {S}^x", \
	"vegeta^attack^-header^Authorization: Basic {S}", \
	"newman^run^c^--env-var^token={S}", \
	"k6^run^-e^PASSWORD={S}^x.js", \
	"grpcurl^-H^authorization: Bearer {S}^h:1^list", \
	"websocat^-H=Authorization: Bearer {S}^x", \
	"wscat^--auth^u:{S}^-c^x", \
	"aria2c^--rpc-secret={S}", \
	"lynx^-auth=u:{S}^x", \
	"lynx^-pauth=u:{S}^x", \
	"yt-dlp^--video-password^{S}^x", \
	"gallery-dl^-u^u^-p^{S}^x", \
	/* code */ \
	"git^-c^http.proxy=http://u:{S}@p:1^fetch", \
	"git^-c^credential.helper=!f() { echo password={S}; }; f^fetch", \
	"git^remote^set-url^origin^https://u:{S}@github.com/x", \
	"git^config^--global^url.https://u:{S}@github.com/.insteadOf^https://github.com/", \
	"p4^-u^u^-P^{S}^sync", \
	"cvs^-d^:pserver:u:{S}@h:/r^co^x", \
	"glab^auth^login^-t^{S}", \
	"tea^login^add^--token^{S}", \
	"act^-s^TOKEN={S}", \
	"act^-s^FOO={S}", \
	"gitlab-runner^register^--registration-token^{S}", \
	"gitlab-runner^register^-r^{S}", \
	"./config.sh^--url^x^--token^{S}", \
	"drone^secret^add^--name^x^--data^{S}", \
	"firebase^deploy^--token^{S}", \
	/* containers, clouds */ \
	"kubectl^patch^secret^x^-p^{\"stringData\":{\"k\":\"{S}\"}}", \
	"kubectl^set^env^deploy/x^A_TOKEN={S}", \
	"kubectl^run^x^--image=y^--env=PASSWORD={S}", \
	"kubectl^config^set-credentials^u^--token={S}", \
	"kubeadm^join^h:6443^--token^{S}", \
	"k3s^agent^-t^{S}", \
	"argocd^login^h^--username^admin^--password^{S}", \
	"argocd^account^update-password^--current-password^x^--new-password^{S}", \
	"flux^create^secret^git^x^--password={S}", \
	"docker^plugin^set^x^password={S}", \
	"docker^service^create^--env^DB_PASS={S}^x", \
	"docker^run^-l^traefik.http.middlewares.a.basicauth.users=u:{S}^x", \
	"docker^run^-e^DATABASE_URL=postgres://u:{S}@h/d^x", \
	"skopeo^copy^--src-creds^u:x^--dest-creds=u:{S}^a^b", \
	"skopeo^copy^--src-registry-token^{S}^a^b", \
	"crane^auth^login^-u^u^-p^{S}^r", \
	"oras^pull^-u^u^-p^{S}^x", \
	"ctr^images^pull^--user^u:{S}^x", \
	"cosign^login^-u^u^-p^{S}^r", \
	"cosign^sign^--identity-token={S}^x", \
	"trivy^image^--password^{S}^x", \
	"eb^setenv^A={S}", \
	"cf^set-env^app^DB_PASSWORD^{S}", \
	"cf^create-user^u^{S}", \
	"dokku^config:set^app^A={S}", \
	"heroku^config:add^A={S}", \
	"infisical^secrets^set^A={S}", \
	"op^item^create^password={S}", \
	"op^item^edit^x^credential[password]={S}", \
	"chamber^write^svc^key^{S}", \
	"berglas^create^b/x^{S}", \
	"sops^--set^[\"a\"] \"{S}\"^f.yaml", \
	"credhub^set^-n^x^-t^password^-w^{S}", \
	"akeyless^create-secret^-n^x^-v^{S}", \
	"aws^iam^create-login-profile^--password^{S}", \
	"aws^lambda^update-function-configuration^--environment^Variables={DB_PASSWORD={S},A=b}", \
	"aws^ecs^run-task^--overrides^{\"containerOverrides\":[{\"environment\":[{\"name\":\"DB_PASSWORD\",\"value\":\"{S}\"}]}]}", \
	"aws^cloudformation^deploy^--parameter-overrides^DbPassword={S}", \
	"aws^cloudformation^create-stack^--parameters^ParameterKey=DbPassword,ParameterValue={S}", \
	"az^sql^server^create^-u^u^-p^{S}^-n^x", \
	"az^vm^create^--admin-password^{S}", \
	"az^vm^extension^set^--protected-settings^{\"x\":\"{S}\"}", \
	"az^container^create^--secure-environment-variables^A={S}", \
	"az^container^create^--registry-password^{S}", \
	"az^storage^container^list^--sas-token^{S}", \
	"gcloud^run^deploy^x^--set-env-vars^DB_PASS={S},A=b", \
	"gcloud^sql^users^create^u^--password={S}", \
	"gsutil^-o^Credentials:gs_secret_access_key={S}^ls", \
	"doctl^compute^droplet^list^-t^{S}", \
	"linode-cli^linodes^create^--root_pass^{S}", \
	"ibmcloud^login^--apikey^{S}", \
	"scw^config^set^secret-key={S}", \
	"mc^config^host^add^a^http://h^AK^{S}", \
	"mc^admin^user^svcacct^add^a^u^--secret-key^{S}", \
	"rclone^--sftp-pass^{S}^ls^:sftp:", \
	"rclone^lsd^:s3,secret_access_key={S}:b", \
	"rclone^config^update^r^token^{S}", \
	"rclone^config^create^r^s3^secret_access_key={S}", \
	"rclone^serve^webdav^--user^u^--pass^{S}", \
	"swift^-A^http://h^-U^a:u^-K^{S}^list", \
	"openstack^--os-password^{S}^server^list", \
	"b2^authorize-account^id1^{S}", \
	"azcopy^copy^a^https://x.blob.core.windows.net/c?sv=1&sig={S}", \
	"wandb^login^{S}", \
	"openai^-k^{S}^api^x", \
	"llm^keys^set^openai^--value^{S}", \
	"huggingface-cli^login^--token^{S}", \
	"stripe^--api-key^{S}^x", \
	/* backups */ \
	"restic^--password-command^echo {S}^backup", \
	"env^BORG_PASSCOMMAND=echo {S}^borg^create", \
	"env^PASSPHRASE={S}^duplicity^a^b", \
	"duplicity^a^ftp://u:{S}@h/x", \
	"kopia^repository^connect^filesystem^-p^{S}", \
	"duplicati-cli^backup^ftp://h?auth-username=u&auth-password={S}", \
	"curlftpfs^u:{S}@h^/m", \
	"curlftpfs^-o^user=u:{S}^h^/m", \
	"nextcloudcmd^-u^u^-p^{S}^/d^h", \
	"megadl^-u^u^-p^{S}^x", \
	"mega-login^u^{S}", \
	"duck^--username^u^-p^{S}^-d^x", \
	/* databases */ \
	"mysqlsh^u:{S}@h:3306", \
	"mysqlsh^--uri^u:{S}@h", \
	"mysqladmin^flush-privileges^password^{S}", \
	"mycli^mysql://u:{S}@h", \
	"psql^-c^CREATE USER MAPPING FOR u SERVER s OPTIONS (user 'u', password '{S}')", \
	"psql^-c^CREATE SUBSCRIPTION s CONNECTION 'host=h password={S}' PUBLICATION p", \
	"psql^-c^select dblink_connect('host=h password={S}')", \
	"psql^-c^COPY t FROM PROGRAM 'curl -u u:{S} http://x'", \
	"mongosh^--eval^db.getSiblingDB('admin').auth('u','{S}')", \
	"redis-cli^HELLO^3^AUTH^u^{S}", \
	"redis-cli^MIGRATE^h^6379^k^0^1000^AUTH^{S}", \
	"redis-cli^sentinel^set^m^auth-pass^{S}", \
	"redis-benchmark^-a^{S}^-n^5", \
	"memtier_benchmark^-a^{S}", \
	"iredis^-a^{S}", \
	"redis_exporter^-redis.password={S}", \
	"influx^setup^--username^u^--password^{S}", \
	"influx^-execute^CREATE USER u WITH PASSWORD '{S}'", \
	"influx^user^password^-n^u^-p^{S}", \
	"sqlpackage^/TargetPassword:{S}", \
	"sqlpackage^/a:Publish^/tp:{S}", \
	"dsmadmc^-id=u^-pa={S}", \
	"beeline^-u^jdbc:hive2://h;password={S}", \
	"spark-submit^--conf^spark.ssl.keyPassword={S}^x", \
	"sqoop^import^--password^{S}", \
	"kafka-configs.sh^--alter^--add-config^SCRAM-SHA-256=[iterations=8192,password={S}]", \
	"kafka-console-producer.sh^--producer-property^sasl.jaas.config=org.x.PlainLoginModule required username=\"u\" password=\"{S}\";", \
	"zkCli.sh^addauth^digest^u:{S}", \
	"elasticsearch-users^useradd^u^-p^{S}", \
	"logstash^-e^output { elasticsearch { password => \"{S}\" } }", \
	"solr^auth^enable^-credentials^u:{S}", \
	"couchbase-cli^bucket-list^-c^h^-u^u^-p^{S}", \
	"cbc^cat^-u^u^-P^{S}^k", \
	"asadm^-U^u^-P{S}", \
	"tarantoolctl^connect^u:{S}@h", \
	"surreal^sql^-u^root^-p^{S}", \
	"dolt^-u^root^-p^{S}^sql", \
	"flyway^-password={S}^migrate", \
	"goose^postgres^user=u password={S} dbname=d^up", \
	"migrate^-database^postgres://u:{S}@h/d^up", \
	/* queues, mail, messages */ \
	"mosquitto_pub^-L^mqtt://u:{S}@h/t^-m^x", \
	"mqtt^pub^-u^u^-pw^{S}^-t^x", \
	"mqtt-cli^pub^-u^u^-pw^{S}", \
	"rabbitmqctl^set_parameter^shovel^x^{\"src-uri\":\"amqp://u:{S}@h\"}", \
	"rabbitmqadmin^--username=u^--password={S}^list", \
	"nats^--user^u^--password={S}^pub^a^b", \
	"nats^--server^nats://u:{S}@h^pub^a^b", \
	"amqp-publish^--url=amqp://u:{S}@h", \
	"stomp^-U^u^-W^{S}", \
	"msmtp^--passwordeval=echo {S}", \
	"mutt^-e^set imap_pass={S}", \
	"imapsync^--password1^{S}^--password2^x", \
	"s-nail^-S^smtp-auth-password={S}", \
	"mailx^-S^mta=smtp://u:{S}@h", \
	"apprise^-b^x^slack://T1/B1/{S}", \
	"apprise^-b^x^pover://u1@{S}", \
	"ntfy^pub^-k^{S}^x", \
	"gotify^push^-t^{S}^x", \
	/* remote hosts, networks */ \
	"ssh^-o^ProxyCommand=sshpass -p {S} ssh -W %h:%p j^h", \
	"rsync^-e^sshpass -p {S} ssh^a^h:b", \
	"env^GIT_SSH_COMMAND=sshpass -p {S} ssh^git^fetch", \
	"systemd-run^-p^Environment=PASSWORD={S}^x", \
	"systemd-run^-E^TOKEN={S}^x", \
	"systemd-run^--setenv=DB_PASS={S}^x", \
	"systemd-run^-p^ExecStartPre=mysql -p{S}^x", \
	"systemctl^set-environment^TOKEN={S}", \
	"winscp^/command^open sftp://u:{S}@h/", \
	"winrs^-r:h^-u:u^-p:{S}^dir", \
	"cmdkey^/add:h^/user:u^/pass:{S}", \
	"wmic^/node:h^/user:u^/password:{S}", \
	"vpncmd^h^/SERVER^/PASSWORD:{S}", \
	"openfortivpn^h^-u^u^-p^{S}", \
	"nordvpn^login^-u^u^-p^{S}", \
	"pppd^user^u^password^{S}^nodetach", \
	"nmcli^con^mod^v^vpn.secrets^password={S}", \
	"nmcli^con^mod^x^802-1x.password^{S}", \
	"iw^dev^w^connect^x^key^0:{S}", \
	"ubus^call^session^login^{\"username\":\"root\",\"password\":\"{S}\"}", \
	"onesixtyone^h^{S}", \
	"snmp-check^-c^{S}^h", \
	"check_snmp^-H^h^-C^{S}^-o^x", \
	"wsman^identify^-h^h^-u^u^-p^{S}", \
	"ilorest^login^h^-u^u^-p^{S}", \
	"vmrun^-gu^u^-gp^{S}^runProgramInGuest^x", \
	"qemu-img^create^--object^secret,id=s0,data={S}^x", \
	"qemu-system-x86_64^-spice^port=5900,password={S}", \
	"mount^-t^ecryptfs^-o^key=passphrase:passphrase_passwd={S}^a^b", \
	"mount^-t^cifs^-o^username=u%{S}^//h/s^/m", \
	"gocryptfs^-extpass^echo {S}^a^b", \
	"supervisorctl^-u^u^-p^{S}^status", \
	"caddy^hash-password^--plaintext^{S}", \
	"caddy^hash-password^-p^{S}", \
	"grafana-cli^admin^reset-admin-password^{S}", \
	"gitea^admin^user^change-password^-u^u^-p^{S}", \
	"wp^config^create^--dbuser=u^--dbpass={S}", \
	"wp^user^create^u^e^--user_pass={S}", \
	"drush^user:password^u^{S}", \
	"odoo^-d^x^-w^{S}", \
	"frpc^tcp^-s^h:1^-t^{S}", \
	"bore^local^1^--to^h^-s^{S}", \
	"chisel^server^--auth^u:{S}", \
	"gost^-L=ss://aes:{S}@:8338", \
	"ss-local^-s^h^-k^{S}^-m^x", \
	"ncat^--proxy^h:1^--proxy-auth^u:{S}", \
	"microsocks^-u^u^-P^{S}", \
	"iodine^-P^{S}^h", \
	"sqlmap^-u^x^--auth-cred=u:{S}", \
	"nikto^-id^u:{S}^-h^x", \
	"GetUserSPNs.py^d/u:{S}", \
	"enum4linux^-u^u^-p^{S}^h", \
	"certipy^find^-u^u^-p^{S}", \
	"fs_cli^-H^h^-p^{S}", \
	"sipsak^-U^-a^{S}^-s^x", \
	"sipp^-ap^{S}^h", \
	"radtest^u^x^h^0^{S}", \
	"eapol_test^-c^f^-s^{S}", \
	"transmission-daemon^-u^u^-v^{S}", \
	"deluge-console^connect^h^u^{S}", \
	/* keys, users, packages */ \
	"openssl^ca^-key^{S}^-in^a", \
	"openssl^dgst^-mac^hmac^-macopt^hexkey:{S}", \
	"openssl^mac^-macopt^key:{S}^HMAC", \
	"openssl^kdf^-kdfopt^pass:{S}^PBKDF2", \
	"openssl^cms^-pwri_password^{S}", \
	"openssl^req^-passout^pass:{S}", \
	"gpg-preset-passphrase^-P^{S}^grip", \
	"pk12util^-i^f^-W^{S}", \
	"certutil^-p^{S}^-importpfx^f", \
	"keytool^-importkeystore^-destkeypass^{S}", \
	"bundletool^--ks-pass=pass:{S}", \
	"pkcs11-tool^--login^--pin^{S}", \
	"softhsm2-util^--init-token^--so-pin={S}", \
	"yubico-piv-tool^-a^x^-P^{S}", \
	"tpm2_unseal^-c^k^-p^{S}", \
	"oathtool^--totp^-b^{S}", \
	"mkpasswd^-m^sha-512^{S}", \
	"x11vnc^-storepasswd^{S}^f", \
	"ipa-client-install^-p^admin^-w^{S}", \
	"samba-tool^domain^provision^--adminpass={S}", \
	"samba-tool^user^setpassword^u^--newpassword={S}", \
	"add-user.sh^-u^u^-p^{S}", \
	"kcadm.sh^config^credentials^--user^admin^--password^{S}", \
	"java^-jar^jenkins-cli.jar^-auth^u:{S}^x", \
	"npm^publish^--//npm.example.com/:_authToken={S}", \
	"yarn^config^set^npmScopes.x.npmAuthToken^{S}", \
	"pip^install^git+https://{S}@github.com/x/y", \
	"pip^config^set^global.index-url^https://u:{S}@h/simple", \
	"uv^publish^-t^{S}", \
	"hatch^publish^-u^u^-a^{S}", \
	"poetry^publish^-u^u^-p^{S}", \
	"pdm^publish^-u^u^-P^{S}", \
	"conda^install^-c^https://conda.anaconda.org/t/{S}/c^x", \
	"bundle^config^set^--global^gems.x.com^u:{S}", \
	"composer^config^-g^github-oauth.github.com^{S}", \
	"choco^push^a^-k^{S}", \
	"apt-get^-o^Acquire::http::Proxy=http://u:{S}@p:1^update", \
	"add-apt-repository^deb https://u:{S}@h/ x main", \
	"subscription-manager^register^--activationkey={S}", \
	"landscape-config^--registration-key^{S}", \
	"pro^attach^{S}", \
	"SUSEConnect^-r^{S}", \
	"nix^--option^access-tokens^github.com={S}^build", \
	"terraform^init^-backend-config=access_key={S}", \
	"tofu^apply^-var^token={S}", \
	"packer^build^-var^ssh_password={S}^x", \
	"consul^agent^-encrypt={S}", \
	"consul^acl^set-agent-token^agent^{S}", \
	"consul^kv^put^x/password^{S}", \
	"nomad^var^put^x^k={S}", \
	"vault^operator^generate-root^-nonce=x^{S}", \
	"dotnet^user-secrets^set^A:B^{S}", \
	"gcloud^config^set^auth/access_token^{S}", \
	"steamcmd^+login^u^{S}^+quit", \
	"srcds_run^+rcon_password^{S}", \
	"mcrcon^-H^h^-p^{S}^list", \
	"esxcli^-s^h^-u^u^-p^{S}^system", \
	"jmeter^-H^h^-u^u^-a^{S}^-n", \
	"java^-DAPI_KEY={S}^-jar^x", \
	"clickhouse-client^-q^SELECT * FROM mysql('h','d','t','u','{S}')", \
	/* what runs others, and code */ \
	"cross-env^API_KEY={S}^node^x", \
	"env^-S^TOKEN={S} app", \
	"screen^-dmS^x^mysql^-p{S}", \
	"php^-r^new PDO('mysql:host=h','u','{S}');", \
	"perl^-MDBI^-e^DBI->connect('dbi:mysql:d','u','{S}')", \
	"python3^-c^os.environ['TOKEN']='{S}'", \
	"python3^-c^boto3.client('s3', aws_secret_access_key='{S}')", \
	"node^-e^client.auth('{S}')", \
	"bazel^build^--remote_header=Authorization=Bearer {S}^x", \
	"sh^-c^echo {S} | docker secret create x -", \
	"sh^-c^printf %s {S} | gcloud secrets create x --data-file=-", \
	"sh^-c^echo {S} | gh secret set X", \
	"sh^-c^echo {S} | vault login -", \
	"sh^-c^echo {S} | kubectl create secret generic x --from-file=k=/dev/stdin", \
	"sh^-c^echo {S} | htpasswd -i f u", \
	"sh^-c^echo {S} | vncpasswd -f > f", \
	"sh^-c^echo {S} | openssl passwd -6 -stdin", \
	"sh^-c^echo {S} | sshfs -o password_stdin u@h: /m", \
	"sh^-c^echo {S} | mkpasswd -s", \
	"sh^-c^echo {S} | pass insert -e x", \
	"sh^-c^echo {S} | ansible-vault encrypt_string --stdin-name x", \
	"sh^-c^echo {S} | systemd-creds encrypt - x", \
	"sh^-c^echo {S} | keepassxc-cli open f", \
	"sh^-c^curl -K - http://x <<< 'user = \"u:{S}\"'",

#define TOOL_LINES_KEPT \
	"k3s^kubectl^get^pods^-A", \
	"oras^pull^-o^out^r/x:1", \
	"az^webapp^create^-p^plan^-n^x", \
	"az^sql^db^list^-g^rg^-s^srv", \
	"kubectl^patch^deploy^x^-p^{\"spec\":{\"replicas\":2}}", \
	"asadmin^--passwordfile^/etc/pw^start-domain", \
	"app^--passwdfile=/etc/pw^--tokenfile^/t", \
	"check_snmp^-H^h^-o^x^-w^80^-c^90", \
	"openssl^dgst^-sha256^-mac^hmac^-macopt^digest:sha256", \
	"openssl^req^-new^-key^ca.key^-out^a.csr", \
	"mount^-o^rw,noatime^/dev/sda1^/m", \
	"systemd-run^--unit=x^--property=MemoryMax=1G^ls^-l", \
	"ssh^-o^ProxyCommand=nc -X connect -x p:1080 %h %p^h", \
	"env^LC_ALL=C^sort^-k^2", \
	"conda^install^-c^https://conda.anaconda.org/conda-forge^x", \
	"curl^https://forum.example.com/t/how-to-do-it/123", \
	"composer^config^--list", \
	"bundle^config^set^path^vendor/bundle", \
	"consul^kv^put^x/size^5", \
	"consul^kv^get^a/b", \
	"nomad^job^run^x.nomad", \
	"mkpasswd^-l^20", \
	"supervisorctl^restart^all", \
	"mc^ls^a/b", \
	"b2^ls^bucket", \
	"rclone^sync^a:b^c:d^--transfers^8", \
	"act^-j^build", \
	"gitlab-runner^run^-c^/etc/x.toml", \
	"caddy^run^--config^/etc/caddy/Caddyfile", \
	"odoo^-d^x^-i^base", \
	"apprise^--version", \
	"qemu-system-x86_64^-m^2048^-drive^file=a.qcow2,format=qcow2", \
	"curl^-d^{\"name\":\"color\",\"value\":\"red\"}^x", \
	"curl^-d^<entry key=\"size\">5</entry>^x", \
	"aws^cloudformation^create-stack^--parameters^ParameterKey=Size,ParameterValue=5", \
	"python3^-c^db.connect('h', 5432)", \
	"sh^-c^echo hello | grep secret", \
	"sh^-c^echo y | docker volume prune", \
	"sh^-c^curl -K cfg http://x", \
	"docker^run^-p^8080:80^-v^/t/a:/b^x", \
	"eb^deploy", \
	"transmission-daemon^-f^-g^/etc/t", \
	"gotify^watch^x", \
	"xh^-b^http://h/x", \
	"frpc^-c^/etc/frpc.ini", \
	"tpm2_pcrread^sha256:0", \
	"vault^operator^init^-key-shares=5", \
	"npm^run^build^--^--prod", \
	"pip^install^-r^requirements.txt",
/* clang-format on */

#endif
