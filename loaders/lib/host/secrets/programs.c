/* SPDX-License-Identifier: Apache-2.0 */
/*
 * programs: options whose name says that they take a secret (--password X) are not in here: those
 * are found for every program.
 */
#include "loaders/lib/host/secrets/programs.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "schema/base/array.h"

#define MYSQL                                                                                       \
	"mysql mysqldump mysqladmin mysqlimport mysqlshow mysqlcheck mysqlbinlog mysqlslap "        \
	"mysqlpump mysqlsh mysql_upgrade mysql_secure_installation mariadb mariadb-dump "           \
	"mariadb-admin mariadb-backup mariadb-import mariadb-show mariadb-check mariadb-binlog "    \
	"mariadb-slap mariabackup xtrabackup innobackupex mydumper myloader mycli pt-query-digest " \
	"pt-table-checksum pt-table-sync pt-online-schema-change"
#define LDAP                                                                                   \
	"ldapsearch ldapadd ldapmodify ldapdelete ldapmodrdn ldapwhoami ldapcompare ldapexop " \
	"ldappasswd dsconf dsidm dsctl"
#define SNMP                                                                                      \
	"snmpget snmpgetnext snmpwalk snmpset snmpbulkwalk snmpbulkget snmptrap snmpinform "      \
	"snmpstatus snmptable snmpdf snmpdelta snmptest snmpusm snmpvacm snmpnetstat snmp-check " \
	"net-snmp-create-v3-user net-snmp-config"
#define SEVENZIP "7z 7za 7zr 7zz 7zzs p7zip"
#define SHELLS \
	"sh bash dash zsh ksh mksh ash fish rbash tcsh csh busybox su runuser script sg flock pwsh powershell cmd"
#define CONTAINERS "docker podman nerdctl"
#define QEMU       "qemu-img qemu-io qemu-nbd qemu-kvm kvm qemu-system-x86_64 qemu-system-aarch64"
#define TPM2                                                                                    \
	"tpm2_create tpm2_createprimary tpm2_load tpm2_import tpm2_unseal tpm2_sign tpm2_hmac " \
	"tpm2_rsadecrypt tpm2_encryptdecrypt tpm2_changeauth tpm2_nvdefine tpm2_nvread "        \
	"tpm2_nvwrite tpm2_evictcontrol"
#define SMARTCARDS                                                                            \
	"pkcs11-tool pkcs15-tool pkcs15-init pkcs15-crypt softhsm2-util p11tool ykman mmcli " \
	"cardos-tool sc-hsm-tool"

static const struct rule rules[] = {
	/* shells */
	{SHELLS, NULL, "-c -Command --command /c /C", RULE_CODE},
	{SHELLS, NULL, "abefhiklmnprstuvxlBCDEHPTV", RULE_FLAGS},
	{"bash sh zsh ksh", NULL, "-o -O --rcfile --init-file", RULE_OTHER},
	/* HTTP */
	{"curl", NULL, "-u --user -U --proxy-user -E --cert --proxy-cert", RULE_COLON},
	{"curl", NULL, "-b --cookie", RULE_COOKIE},
	{"curl", NULL, "--pass --proxy-pass --tlspassword --proxy-tlspassword --oauth2-bearer",
	 RULE_SECRET},
	{"curl", NULL,
	 "-o -d -F -A -e -X -K -T -w -m -C -c -r -t -x -H -y -Y -z --key --proxy-key --cookie-jar",
	 RULE_OTHER},
	{"curl", NULL, "#0123468aBfgGiIjJkLlMnNOpqRsSvVZ", RULE_FLAGS},
	{"wget wget2", NULL, "--use-askpass --private-key --load-cookies --save-cookies",
	 RULE_OTHER},
	{"youtube-dl yt-dlp gallery-dl", NULL, "-p", RULE_SECRET},
	{"lynx", NULL, "-auth= -pauth=", RULE_COLON},
	{"curlftpfs", NULL, "user= proxy_user=", RULE_COLON},
	{"transmission-remote", NULL, "-n --auth", RULE_COLON},
	{"check_http check_curl", NULL, "-a -b", RULE_COLON},
	{"check_mysql check_mysql_query check_pgsql check_radius check_disk_smb", NULL, "-p",
	 RULE_SECRET},
	{"check_ldap", NULL, "-P", RULE_SECRET},
	{"convertto-securestring", NULL, "@1", RULE_SECRET},
	{"http https httpie xh xhs", "bearer", "-a", RULE_SECRET},
	{"http https httpie xh xhs", NULL, "-a", RULE_COLON},
	{"ab siege", NULL, "-A -P", RULE_COLON},
	{"ab", NULL, "-C", RULE_COOKIE},
	{"hey oha", NULL, "-a", RULE_COLON},
	{"jmeter", NULL, "-a", RULE_SECRET},
	{"squidclient", NULL, "-w -W", RULE_SECRET},
	/* databases */
	{MYSQL, NULL, "-p --passwd --password1 --password2 --password3", RULE_SECRET},
	{MYSQL, NULL, "-P -h -u -D -S -e", RULE_OTHER},
	{MYSQL, NULL, "ABbCEfGHINnoqrstUvVwX", RULE_FLAGS},
	{"mysqladmin mariadb-admin", NULL, "password+1 old-password+1", RULE_SECRET},
	{"mongo mongosh mongodump mongorestore mongoexport mongoimport mongostat mongotop mongofiles",
	 NULL, "-p", RULE_SECRET},
	{"redis-cli valkey-cli keydb-cli", NULL, "-a --pass requirepass+1 masterauth+1 AUTH+*",
	 RULE_SECRET},
	{"redis-cli valkey-cli keydb-cli", NULL, "SETUSER+* auth-pass+1", RULE_SECRET},
	{"redis-benchmark valkey-benchmark memtier_benchmark iredis rdb redis-dump redis-load",
	 NULL, "-a", RULE_SECRET},
	{"redis-cli valkey-cli keydb-cli", NULL, "-h -p -n -r -i -s -u", RULE_OTHER},
	{"cqlsh dsbulk", NULL, "-p", RULE_SECRET},
	{"nodetool sstableloader cassandra-stress", NULL, "-pw", RULE_SECRET},
	{"sqlplus sqlcl sql exp expdp imp impdp sqlldr rman rwrun", NULL, "userid= @1 target+1",
	 RULE_SLASH},
	{"connect conn", NULL, "@1 target+1", RULE_SLASH},
	{"db2", NULL, "@*", RULE_CODE},
	{"expect lftp kadmin kadmin.local", NULL, "-c -e -q", RULE_CODE},
	{"sqlplus sqlcl", NULL, "-R -M -C", RULE_OTHER},
	{"connect db2", NULL, "using+1 new+1 confirm+1", RULE_SECRET},
	{"sqlcmd osql bcp isql tsql fisql freebcp mssql-cli defncopy sqsh dbisql", NULL, "-P",
	 RULE_SECRET},
	{"sqlcmd osql bcp isql tsql fisql freebcp mssql-cli defncopy sqsh", NULL,
	 "-S -U -d -H -D -Q -q -i -o", RULE_OTHER},
	{"isql iusql", NULL, "@3", RULE_SECRET},
	{"influx influxd", NULL, "-t -p", RULE_SECRET},
	{"etcdctl", NULL, "--user add+1", RULE_COLON},
	{"arangosh snowsql vsql nzsql fbsql isql-fb gsec gbak gfix", NULL, "-w -pas -password -pw",
	 RULE_SECRET},
	{"beeline hbase impala-shell trino presto hdbsql", NULL, "-p", RULE_SECRET},
	{"clickhouse clickhouse-client clickhouse-local clickhouse-benchmark", NULL, "--port",
	 RULE_OTHER},
	{"psql pg_dump pg_dumpall pg_restore createdb dropdb createuser pgbench pg_basebackup "
	 "pg_isready vacuumdb reindexdb clusterdb pgcli",
	 NULL, "-p -h -U -d", RULE_OTHER},
	{"sqlite3 sqlcipher", NULL, "-key -hexkey", RULE_SECRET},
	{"memcached-tool couchbase-cli cbq cbbackupmgr surreal dolt elasticsearch-users", NULL,
	 "-p --password", RULE_SECRET},
	{"cbc asadm asinfo aql asbackup asrestore", NULL, "-P", RULE_SECRET},
	{"zkcli.sh zkcli zookeeper-client", NULL, "addauth+2", RULE_COLON},
	{"sqlpackage", NULL, "/tp: /sp:", RULE_SECRET},
	{"dsmadmc dsmc", NULL, "-pa=", RULE_SECRET},
	{"odoo odoo-bin", NULL, "-w", RULE_SECRET},
	{"neo4j-admin", NULL, "set-initial-password+1", RULE_SECRET},
	{"cypher-shell", NULL, "-p", RULE_SECRET},
	/* directories, users, Windows networks */
	{LDAP, NULL, "-w", RULE_SECRET},
	{"ldappasswd", NULL, "-s -a", RULE_SECRET},
	{"slappasswd", NULL, "-s", RULE_SECRET},
	{LDAP, NULL, "-D -b -H -h -p -y -f", RULE_OTHER},
	{LDAP, NULL, "xZvnLMcCkAaRWV", RULE_FLAGS},
	{"smbclient rpcclient smbget smbcacls smbcquotas smbtree smbmap winexe wmic net nmblookup "
	 "cifsdd ntlm_auth samba-tool",
	 NULL, "-U --user --username", RULE_PERCENT},
	{"wbinfo", NULL, "-a --authenticate -K -A --set-auth-user", RULE_PERCENT},
	{"smbclient", NULL, "-p -c -D -I -W -L -m -t -T -n -O -R -i -l -s -d -A", RULE_OTHER},
	{"smbclient", NULL, "@2", RULE_SECRET},
	{"smbmap crackmapexec netexec nxc evil-winrm hydra medusa ncrack patator psexec psexec64 "
	 "dsquery dsadd dsget enum4linux enum4linux-ng certipy certipy-ad bloodhound-python "
	 "ldapdomaindump",
	 NULL, "-p", RULE_SECRET},
	{"psexec.py smbexec.py wmiexec.py secretsdump.py smbclient.py atexec.py dcomexec.py "
	 "getuserspns.py getnpusers.py gettgt.py lookupsid.py samrdump.py mssqlclient.py "
	 "rpcdump.py reg.py services.py",
	 NULL, "@1", RULE_COLON},
	{"nikto", NULL, "-id", RULE_COLON},
	{"mount mount.cifs smbmount", NULL, "user= username=", RULE_PERCENT},
	{"ipa-client-install ipa-server-install ipa-replica-install", NULL, "-w", RULE_SECRET},
	{"ipa-server-install", NULL, "-p -a", RULE_SECRET},
	{"winrs", NULL, "-p: -password:", RULE_SECRET},
	{"net", NULL, "use+2", RULE_SECRET},
	{"net samba-tool", "user", "add+2 create+2", RULE_SECRET},
	{"net", "user", "user+2", RULE_SECRET},
	{"schtasks", NULL, "/rp /p", RULE_SEPARATE},
	{"wevtutil tasklist taskkill systeminfo driverquery", NULL, "/p", RULE_SEPARATE},
	{"signtool", NULL, "/p /csp-pin", RULE_SEPARATE},
	{"signtool osslsigncode", NULL, "-p -pass", RULE_SECRET},
	{"htpasswd htdbm mosquitto_passwd", NULL, "-b", RULE_LAST},
	{"htpasswd htdbm mosquitto_passwd", NULL, "cnmBsdpDUvtx25iH", RULE_FLAGS},
	{"htpasswd htdbm", NULL, "-C -r -T", RULE_OTHER},
	{"useradd usermod adduser groupadd groupmod", NULL, "-p --password", RULE_SECRET},
	{"useradd usermod groupadd groupmod", NULL, "mMrNlUDoLf", RULE_FLAGS},
	{"dscl", NULL, "-passwd", RULE_LAST},
	{"kadmin kadmin.local", NULL, "-w", RULE_SECRET},
	{"addprinc ank add_principal cpw change_password kadmin kadmin.local", NULL, "-pw",
	 RULE_SECRET},
	{"radtest", NULL, "@2 @5", RULE_SECRET},
	{"eapol_test", NULL, "-s", RULE_SECRET},
	{"radclient", NULL, "@3", RULE_SECRET},
	{"security", NULL, "-p -w -P", RULE_SECRET},
	/* archives, documents, keys */
	{"zip zipcloak unzip zipinfo zipnote funzip", NULL, "-P --password", RULE_SECRET},
	{"zip zipcloak", NULL, "rejqv0123456789mouTyXFDfSlLk@", RULE_FLAGS},
	{"unzip", NULL, "oqnjlvxaCLftTuXZ:pcK", RULE_FLAGS},
	{"zip unzip", NULL, "-d -x -i -b -t -n", RULE_OTHER},
	{SEVENZIP, NULL, "-p", RULE_ATTACHED},
	{"rar unrar wrar winrar", NULL, "-p -hp", RULE_ATTACHED},
	{"arj unarj lha", NULL, "-g", RULE_ATTACHED},
	{"unar lsar", NULL, "-p -password", RULE_SECRET},
	{"fcrackzip", NULL, "-p", RULE_SECRET},
	{"pdftk", NULL, "user_pw+1 owner_pw+1 input_pw+1", RULE_SECRET},
	{"qpdf", NULL, "--encrypt", RULE_TWO},
	{"pdftotext pdfimages pdfinfo pdftoppm pdftocairo pdffonts pdftohtml pdftops pdfdetach xpdf",
	 NULL, "-upw -opw", RULE_SECRET},
	{"mutool mudraw", NULL, "-p", RULE_SECRET},
	{"openssl", NULL, "-k -K -psk -hmac -srppass -proxy_pass -secret", RULE_SEPARATE},
	{"openssl", "ca", "-key", RULE_SEPARATE},
	{"openssl", NULL,
	 "-pass -passin -passout -password -dpass -dkeypass -macopt -kdfopt -pkeyopt", RULE_PASS},
	{"openssl", NULL, "-salt -in -out -iv -S -kfile -key -rand -pubin", RULE_OTHER},
	{"openssl", NULL, "passwd+*", RULE_SECRET},
	{"gpg gpg2", NULL, "-u -r -o --passphrase-fd --passphrase-file", RULE_OTHER},
	{"ccrypt ccencrypt ccdecrypt ccat", NULL, "-K", RULE_SECRET},
	{"mcrypt mdecrypt", NULL, "-k", RULE_SECRET},
	{"aescrypt steghide outguess veracrypt truecrypt cryptcat scrypt", NULL, "-p", RULE_SECRET},
	{"outguess cryptcat", NULL, "-k", RULE_SECRET},
	{"gpg-preset-passphrase", NULL, "-P", RULE_SECRET},
	{"pk12util", NULL, "-W -K", RULE_SECRET},
	{"certutil", NULL, "-p", RULE_SEPARATE},
	{SMARTCARDS, NULL, "--pin --so-pin --new-pin --puk -pin", RULE_SECRET},
	{"yubico-piv-tool", NULL, "-P -N -k", RULE_SECRET},
	{TPM2, NULL, "-p -P", RULE_SECRET},
	{"oathtool", NULL, "@1", RULE_SECRET},
	{"oathtool", NULL, "-d -w -s -S -N -c", RULE_OTHER},
	{"mkpasswd", NULL, "@1", RULE_SECRET},
	{"mkpasswd", NULL, "-m -S -R -P -l -d -c -C", RULE_OTHER},
	{"ssh-keygen", NULL, "-N -P", RULE_SECRET},
	{"ssh-keygen", NULL, "-t -b -f -C -m", RULE_OTHER},
	{"ssh-keygen", NULL, "qpyvl", RULE_FLAGS},
	{"keytool jarsigner apksigner", NULL,
	 "-storepass -keypass -new -srcstorepass -deststorepass", RULE_SECRET},
	{"apksigner", NULL, "--ks-pass --key-pass", RULE_PASS},
	{"cryptsetup", NULL, "-d", RULE_OTHER},
	/* remote hosts, networks */
	{"sshpass", NULL, "-p", RULE_SECRET},
	{"sshpass", NULL, "ve", RULE_FLAGS},
	{"plink pscp psftp putty kitty", NULL, "-pw", RULE_SECRET},
	{"lftp open", NULL, "-u --user", RULE_COMMA},
	{"lftp", NULL, "-p -f", RULE_OTHER},
	{"user", NULL, "@2", RULE_SECRET},
	{"ncftp ncftpget ncftpput ncftpls", NULL, "-p", RULE_SECRET},
	{"wpa_passphrase onesixtyone", NULL, "@2", RULE_SECRET},
	{"iwconfig iw iwpriv", NULL, "key+1 enc+1", RULE_SECRET},
	{SNMP, NULL, "-A -X -c -3m -3M", RULE_SECRET},
	{SNMP, NULL, "-v -l -u -a -x -n -O -r -t -m -M -e -E", RULE_OTHER},
	{"check_snmp", NULL, "-C -A -X", RULE_SECRET},
	{"check_snmp", NULL, "-H -o -w -c -p -L -U -a -x", RULE_OTHER},
	{"ipmitool ipmiutil", NULL, "-P -k -y", RULE_SECRET},
	{"ipmitool", NULL, "password+2", RULE_SECRET},
	{"ipmitool", NULL, "-p -I -H -U -L -A -C", RULE_OTHER},
	{"ipmipower ipmi-sensors ipmi-chassis ipmi-sel ipmi-fru ipmiconsole ipmi-config racadm "
	 "redfishtool ilorest wsman",
	 NULL, "-p -k", RULE_SECRET},
	{"vmrun", NULL, "-gp -vp", RULE_SECRET},
	{"vmware-cmd", NULL, "-P", RULE_SECRET},
	{"esxcli", NULL, "-p", RULE_SECRET},
	{QEMU, NULL, "-object --object", RULE_DATA},
	{"xfreerdp wlfreerdp sdl-freerdp freerdp mstsc", NULL,
	 "/p: /gp: /pth: /pcb: /smartcard-logon: -p", RULE_SECRET},
	{"rdesktop vncdo vncdotool vinagre", NULL, "-p", RULE_SECRET},
	{"x11vnc", NULL, "-passwd -viewpasswd -storepasswd", RULE_SECRET},
	{"vncpasswd", NULL, "@*", RULE_SECRET},
	{"openconnect openfortivpn nordvpn", NULL, "-p", RULE_SECRET},
	{"pppd", NULL, "password+1", RULE_SECRET},
	{"ss-server ss-local ss-redir ss-tunnel ssserver sslocal", NULL, "-k", RULE_SECRET},
	{"microsocks iodine iodined", NULL, "-P", RULE_SECRET},
	{"frpc", NULL, "-t", RULE_SECRET},
	{"bore", NULL, "-s", RULE_SECRET},
	{"fs_cli supervisorctl gitea forgejo mcrcon rcon rcon-cli", NULL, "-p", RULE_SECRET},
	{"steamcmd", NULL, "+login+2", RULE_SECRET},
	{"sipsak", NULL, "-a", RULE_SECRET},
	{"sipp", NULL, "-ap", RULE_SECRET},
	{"caddy", "hash-password", "-p --plaintext", RULE_SECRET},
	{"grafana-cli grafana grafana-server", NULL, "reset-admin-password+1", RULE_SECRET},
	{"add-user.sh add-user", NULL, "-p", RULE_SECRET},
	{"drush", NULL, "user:password+2 user-password+2 upwd+2", RULE_SECRET},
	{"transmission-daemon", NULL, "-v", RULE_SECRET},
	{"deluge-console", NULL, "connect+3", RULE_SECRET},
	{"cloudflared", NULL, "install+1", RULE_SECRET},
	{"ngrok", NULL, "authtoken+1 add-authtoken+1", RULE_SECRET},
	{"send send_user exp_send", NULL, "@*", RULE_SECRET},
	{"nmcli wpa_cli rclone netsh uci iwctl", NULL, "@*", RULE_NAMED},
	{"rclone", NULL, "obscure+1", RULE_SECRET},
	{"iscsiadm", NULL, "-v", RULE_SECRET},
	/* queues, mail */
	{"mosquitto_pub mosquitto_sub mosquitto_rr mosquitto_ctrl", NULL, "-P --pw", RULE_SECRET},
	{"mosquitto_pub mosquitto_sub mosquitto_rr", NULL, "-p -h -u -t -m -i -q", RULE_OTHER},
	{"mqtt mqtt-cli emqx mqttx", NULL, "-pw -P", RULE_SECRET},
	{"stomp", NULL, "-W", RULE_SECRET},
	{"apprise", NULL, "@*", RULE_URL},
	{"gotify", "push", "-t", RULE_SECRET},
	{"rabbitmqctl", NULL,
	 "add_user+2 change_password+2 authenticate_user+2 eval_password+1 hash_password+1",
	 RULE_SECRET},
	{"rabbitmqadmin", NULL, "-p", RULE_SECRET},
	{"swaks", NULL, "-ap --auth-password", RULE_SECRET},
	{"sendemail", NULL, "-xp", RULE_SECRET},
	{"ntfy", NULL, "-u", RULE_COLON},
	{"ntfy", NULL, "-k", RULE_SECRET},
	{"emqx_ctl", NULL, "add+2 passwd+2", RULE_SECRET},
	/* containers and clouds */
	{CONTAINERS " buildah skopeo oras crane helm oc nuget regctl ctr img cosign", "login",
	 "-p --password", RULE_SECRET},
	{"oras", NULL, "-p", RULE_SECRET},
	{"kubectl oc", "secret", "-p --patch", RULE_SECRET},
	{"k3s", "agent", "-t", RULE_SECRET},
	{"k3s", "server", "-t", RULE_SECRET},
	{"skopeo buildah podman oras", NULL, "--creds --src-creds --dest-creds", RULE_COLON},
	{"crictl", NULL, "--creds --auth", RULE_COLON},
	{"ctr", NULL, "-u --user", RULE_COLON},
	{"kubectl oc k3s microk8s minikube", NULL, "--from-literal", RULE_PAIR},
	{"vault bao", NULL,
	 "login+* auth+* unseal+* unwrap+* lookup+* renew+* revoke+* rekey+* generate-root+*",
	 RULE_SECRET},
	{"vault bao", NULL, "put+* write+* patch+*", RULE_PAIR},
	{"vault bao", NULL, "-id", RULE_SECRET},
	{"consul nomad", NULL, "-token -encrypt set-agent-token+2", RULE_SECRET},
	{"consul", NULL, "put+2", RULE_NAMED},
	{"nomad", "var", "put+*", RULE_PAIR},
	{"aws", NULL, "--value --secret-string --secret-binary", RULE_SECRET},
	{"aws", NULL, "set+2", RULE_NAMED},
	{"az", "login", "-p", RULE_SECRET},
	{"az", "secret", "--value", RULE_SECRET},
	{"az", "keyvault", "--value", RULE_SECRET},
	{"az", "sql", "-p", RULE_SECRET},
	{"az", "postgres", "-p", RULE_SECRET},
	{"az", "mysql", "-p", RULE_SECRET},
	{"az", NULL, "--protected-settings", RULE_SECRET},
	{"az", NULL, "--secure-environment-variables", RULE_PAIR},
	{"gh glab", "secret", "-b --body -v --value", RULE_SECRET},
	{"glab", "login", "-t", RULE_SECRET},
	{"glab", "variable", "-v --value", RULE_SECRET},
	{"vercel now netlify railway render", NULL, "-t --auth", RULE_SECRET},
	{"fly flyctl doppler heroku chamber infisical", NULL, "set+*", RULE_PAIR},
	{"heroku dokku", NULL, "config:set+* config:add+*", RULE_PAIR},
	{"eb", NULL, "setenv+*", RULE_PAIR},
	{"chamber", NULL, "write+3", RULE_SECRET},
	{"berglas", NULL, "create+2 update+2", RULE_SECRET},
	{"credhub", NULL, "-w -v", RULE_SECRET},
	{"akeyless", NULL, "-v", RULE_SECRET},
	{"sops", NULL, "--set", RULE_SECRET},
	{"drone", "secret", "--data", RULE_SECRET},
	{"llm", "keys", "--value", RULE_SECRET},
	{"act", NULL, "-s", RULE_PAIR},
	{"gitlab-runner", "register", "-r -t", RULE_SECRET},
	{"swift", NULL, "-K", RULE_SECRET},
	{"b2", NULL, "authorize-account+2 authorize+2", RULE_SECRET},
	{"openai", NULL, "-k", RULE_SECRET},
	{"wandb", NULL, "login+1", RULE_SECRET},
	{"kopia duck nextcloudcmd owncloudcmd megadl megaput megals megaget megarm megacopy", NULL,
	 "-p", RULE_SECRET},
	{"mega-login", NULL, "@2", RULE_SECRET},
	{"pulumi", "config", "set+2", RULE_SECRET},
	{"mc mcli", NULL, "set+3 set+4", RULE_SECRET},
	{"mc mcli", "user", "add+2 add+3", RULE_SECRET},
	{"mc mcli", "host", "add+3 add+4", RULE_SECRET},
	{"bw bitwarden", NULL, "login+2 unlock+1", RULE_SECRET},
	{"sentry-cli snyk", NULL, "auth+1", RULE_SECRET},
	{"govc xe vim-cmd", NULL, "-pw", RULE_SECRET},
	{"virsh", NULL, "secret-set-value+2 set-user-password+3", RULE_SECRET},
	{"ansible-vault", NULL, "encrypt_string+*", RULE_SECRET},
	{"knife", NULL, "-P", RULE_SECRET},
	{"xcrun altool notarytool", NULL, "-p", RULE_SECRET},
	{"ibmcloud cf", "login", "-p", RULE_SECRET},
	{"cf", NULL, "auth+2 create-user+2", RULE_SECRET},
	{"cf", NULL, "set-env+3", RULE_NAMED},
	{"doctl rancher codecov circleci", NULL, "-t", RULE_SECRET},
	{"gcloud", NULL, "activate-refresh-token+2", RULE_SECRET},
	{"gcloud", "config", "set+2", RULE_NAMED},
	{CONTAINERS " buildah docker-compose", NULL, "--secret", RULE_OTHER},
	/* packages and code */
	{"git npm pnpm yarn", NULL, "config+2 set+2", RULE_NAMED},
	{"npm pnpm yarn", NULL, "--otp", RULE_SECRET},
	{"npm", "token", "revoke+1", RULE_SECRET},
	{"twine flit", NULL, "-p", RULE_SECRET},
	{"poetry composer", NULL, "config+2", RULE_NAMED},
	{"poetry composer", NULL, "config+3", RULE_SECRET},
	{"composer", "github-oauth.github.com", "config+2", RULE_SECRET},
	{"poetry", "publish", "-p", RULE_SECRET},
	{"uv", "publish", "-t -p", RULE_SECRET},
	{"hatch", "publish", "-a", RULE_SECRET},
	{"pdm", "publish", "-P", RULE_SECRET},
	{"bundle bundler", NULL, "set+2 config+2", RULE_COLON},
	{"pro ua ubuntu-advantage", NULL, "attach+1", RULE_SECRET},
	{"suseconnect", NULL, "-r", RULE_SECRET},
	{"nix nix-build nix-shell nix-env nixos-rebuild home-manager", NULL,
	 "access-tokens+1 --access-tokens", RULE_PAIR},
	{"cargo", NULL, "login+*", RULE_SECRET},
	{"gem", "push", "-k", RULE_SECRET},
	{"dotnet nuget choco", "source", "-p --password", RULE_SECRET},
	{"dotnet", "user-secrets", "set+2", RULE_SECRET},
	{"dotnet nuget choco", "push", "-k --api-key", RULE_SECRET},
	{"nuget", NULL, "setapikey+1", RULE_SECRET},
	{"svn svnadmin svnrdump svnsync", NULL, "--username", RULE_OTHER},
	{"cvs", NULL, "-z", RULE_OTHER},
	{"p4", NULL, "-P", RULE_SECRET},
	{"jfrog jf", NULL, "--user", RULE_OTHER},
};

static const struct carrier carriers[] = {
	{"sudo sudoedit", NULL, "ugphCrtTUDR", NULL, 0},
	{"doas", NULL, "uC", NULL, 0},
	{"env", NULL, "uCS", NULL, 0},
	{"nice ionice", NULL, "ncp", NULL, 0},
	{"timeout gtimeout", NULL, "sk", NULL, 1},
	{"taskset", NULL, "", NULL, 1},
	{"chrt", NULL, "TPD", NULL, 1},
	{"chroot", NULL, "", NULL, 1},
	{"stdbuf", NULL, "ioe", NULL, 0},
	{"time", NULL, "of", NULL, 0},
	{"nohup setsid exec command builtin unbuffer eatmydata ltrace busybox toybox tini dumb-init "
	 "catatonit",
	 NULL, "a", NULL, 0},
	{"gosu su-exec setuidgid", NULL, "", NULL, 1},
	{"chpst", NULL, "ugUbenlmopr/", NULL, 0},
	{"flock", NULL, "wE", NULL, 1},
	{"ip", "exec", "", NULL, 1},
	{"uv poetry pdm hatch rye bundle bundler", "run exec", "", NULL, 0},
	{"xargs gxargs", NULL, "adEILnPs", NULL, 0},
	{"strace", NULL, "aeEIoOpPsSuUXb", NULL, 0},
	{"perf", "record stat trace", "eopFcCtumrxDIG", NULL, 0},
	{"watch", NULL, "nq", NULL, 0},
	{"su runuser", NULL, "csgGuwT", NULL, 1},
	{"ssh mosh autossh", NULL, "bBcDeEFIiJLlmMOopQRSWw", NULL, 1},
	{"plink", NULL, "lPDLRimpw", NULL, 1},
	{"sshpass", NULL, "pfdP", NULL, 0},
	{CONTAINERS, "exec", "euw", "detach interactive privileged tty", 1},
	{CONTAINERS, "run create", "acehlmpuvw",
	 "detach disable-content-trust init interactive no-healthcheck oom-kill-disable privileged "
	 "publish-all quiet read-only rm sig-proxy tty replace",
	 0},
	{"crictl", "exec", "", "tty interactive sync", 1},
	{"ctr", "exec", "", "tty detach", 1},
	{"docker-compose", "exec", "euw", "detach privileged no-TTY", 1},
	{"docker-compose", "run", "evpuwl",
	 "detach build no-TTY no-deps rm service-ports use-aliases quiet-pull remove-orphans", 1},
	{"systemd-run", NULL, "Mptu", NULL, 0},
	{"unshare nsenter setpriv firejail bwrap torsocks proxychains proxychains4 faketime", NULL,
	 "tSGf", NULL, 0},
};

/* What takes no secret and runs nothing, though its arguments may be names of programs. */
static const char plain[] =
	"systemctl service journalctl apt apt-get aptitude apt-cache dnf yum zypper dpkg rpm apk snap "
	"flatpak brew man which whereis type whatis apropos pgrep pkill killall pidof ps top htop kill "
	"grep egrep fgrep rg ag ls cp mv rm ln mkdir rmdir chown chmod chgrp cat less more tail head "
	"vi vim nano emacs tar gzip xz touch stat du df id getent tee sed awk sort uniq wc diff cut "
	"echo printf test [ gcc cc clang make cmake nmap nc netstat ss ip ping dig host nslookup "
	"rsync scp sftp file locate update-rc.d chkconfig rc-service loginctl hostnamectl basename "
	"dirname realpath readlink sonde";

/* Commands of other languages (expect, lftp, sqlplus, ftp), which are words of prose as well. */
static const char verbs[] = "send send_user exp_send open connect conn user addprinc ank "
			    "add_principal cpw change_password";

static struct span base_name(struct span a)
{
	size_t i = a.n;

	while (i && a.p[i - 1] != '/' && a.p[i - 1] != '\\')
		i--;
	a = (struct span){a.p + i, a.n - i};
	if (a.n > 4 && !memcmp(a.p + a.n - 4, ".exe", 4))
		a.n -= 4;
	if (a.n > 1 && a.p[0] == '-') /* a login shell */
		a = (struct span){a.p + 1, a.n - 1};
	return a;
}

/* mysql8, mysql-8.0, python3.11 */
static struct span without_version(struct span a)
{
	size_t n = a.n;

	while (n && (isdigit((unsigned char)a.p[n - 1]) || a.p[n - 1] == '.'))
		n--;
	if (n < a.n && n > 1 && (a.p[n - 1] == '-' || a.p[n - 1] == '_'))
		n--;
	return (struct span){a.p, n};
}

/* ---- the index: each name with its row, sorted; made once ---- */

struct entry {
	struct span name;
	const struct rule *rule; /* or */
	const struct carrier *carrier;
	bool plain, verb;
};

static struct entry entries[4096];
static size_t n_entries;
static pthread_once_t entries_once = PTHREAD_ONCE_INIT;

static int span_compare(struct span a, struct span b)
{
	int c = strncasecmp(a.p, b.p, a.n < b.n ? a.n : b.n);

	return c ? c : a.n < b.n ? -1 : a.n > b.n;
}

static int entry_compare(const void *a, const void *b)
{
	const struct entry *x = a, *y = b;
	int c = span_compare(x->name, y->name);

	/* rules of a program stay in the order of the table */
	return c                       ? c :
	       x->rule < y->rule       ? -1 :
	       x->rule > y->rule       ? 1 :
	       x->carrier < y->carrier ? -1 :
					 x->carrier > y->carrier;
}

static void add(const char *names, struct entry e)
{
	for (size_t n; *names; names += n + (names[n] == ' ')) {
		n = strcspn(names, " ");
		e.name = (struct span){names, n};
		if (n_entries < ARRAY_SIZE(entries))
			entries[n_entries++] = e;
	}
}

static void entries_make(void)
{
	for (size_t i = 0; i < ARRAY_SIZE(rules); i++)
		add(rules[i].programs, (struct entry){.rule = &rules[i]});
	for (size_t i = 0; i < ARRAY_SIZE(carriers); i++)
		add(carriers[i].programs, (struct entry){.carrier = &carriers[i]});
	add(plain, (struct entry){.plain = true});
	add(verbs, (struct entry){.verb = true});
	qsort(entries, n_entries, sizeof(*entries), entry_compare);
}

static bool find(struct span name, struct program *out)
{
	size_t low = 0, high = n_entries;

	*out = (struct program){0};
	while (low < high) {
		size_t mid = low + (high - low) / 2;

		if (span_compare(entries[mid].name, name) < 0)
			low = mid + 1;
		else
			high = mid;
	}
	for (; low < n_entries && !span_compare(entries[low].name, name); low++) {
		const struct entry *e = &entries[low];

		out->plain |= e->plain;
		out->verb |= e->verb;
		if (e->rule && out->n < PROGRAM_RULES)
			out->rules[out->n++] = e->rule;
		if (e->carrier && out->n_carriers < PROGRAM_CARRIERS)
			out->carriers[out->n_carriers++] = e->carrier;
	}
	return out->plain || out->n || out->n_carriers;
}

bool program_find(struct span path, struct program *out)
{
	struct span name = base_name(path), plainer = without_version(name);

	if (!name.n || name.n > 32)
		return false;
	if (span_begins(name, "sonde-"))
		name = plainer = (struct span){name.p, 5};
	pthread_once(&entries_once, entries_make);
	return find(name, out) || (plainer.n && plainer.n < name.n && find(plainer, out));
}
