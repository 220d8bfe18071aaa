package secrets_test

import (
	"fmt"
	"math/rand/v2"
	"net/url"
	"strings"
	"testing"

	"github.com/wasmgate/wasmgate/internal/testing/seed"
	"github.com/wasmgate/wasmgate/secrets"
)

var (
	schemes = []string{"postgres", "postgresql", "mysql", "mongodb", "mongodb+srv", "redis", "rediss", "amqp", "https", "http", "ftp", "sftp", "git+https", "jdbc:postgresql", "ldap", "smtp", "nats", "socks5"}
	hosts   = []string{"db.corp.net:5432/app", "10.0.0.1:6379/0", "git.company.io/a/b.git", "c0.x7k2p.mongodb.net/x?retryWrites=true", "[2001:db8::7]:5432/a", "db:5432", "mq-1.prod.internal"}
	texts   = []string{"%s", "DATABASE_URL=%s\n", `{"dsn": "%s"}`, "see <%s>.", "git clone %s && cd a", "`%s`", "[link](%s)"}
)

func pick[T any](r *rand.Rand, list []T) T { return list[r.IntN(len(list))] }

func TestPasswordsInURLs(t *testing.T) {
	s, r := newScanner(t, secrets.Options{Decode: true}), seed.Rand(t)
	found, total := 0, 0
	try := func(text, password string) {
		total++
		if clean, _ := s.Redact(text); strings.Contains(clean, "[redacted:") && !strings.Contains(clean, password) {
			found++
		} else {
			t.Logf("%q became %q", text, clean)
		}
	}
	for range 500 {
		user := pick(r, []string{"", "admin", "bob", "root", "app_user", "svc-1", "x-access-token", "oauth2", "user", "postgres"})
		password := random(r, letters, 8+r.IntN(30))
		host := pick(r, hosts)
		switch r.IntN(5) {
		case 0: // of a manual's host, as tests have them
			password, host = random(r, letters, 16+r.IntN(20)), pick(r, []string{"db.example.com:5432/app", "localhost:5432", "127.0.0.1", "c0.example.mongodb.net/x"})
		case 1:
			password = url.QueryEscape(random(r, letters+"!$&*()+,;=%~", 12))
		case 2: // a person's
			password = pick(r, []string{"Sum", "Berlin", "Kaffee"}) + random(r, "0123456789", 4) + pick(r, []string{"!", "", "-x"})
		case 3: // of base64, not escaped
			password = random(r, letters, 10) + "/" + random(r, letters+"+/", 20) + "=="
		}
		try(fmt.Sprintf(pick(r, texts), pick(r, schemes)+"://"+user+":"+password+"@"+host), password)
	}
	for range 100 { // a token in place of the user
		token := "Aa0" + random(r, letters, 30)
		try("https://"+token+pick(r, []string{"", ":", ":x-oauth-basic"})+"@"+pick(r, hosts), token)
	}
	if found*100 < total*99 {
		t.Errorf("%d of %d found", found, total)
	}
}

// Two hundred lines and more with URLs that hold no secret: of manuals, of templates and
// without user information.
func TestURLsWithPlaceholdersAreLeftAlone(t *testing.T) {
	s := newScanner(t, secrets.Options{Decode: true})
	var lines []string
	for _, info := range []string{
		"user:password", "username:password", "user:pass", "u:p", "admin:admin", "root:root", "guest:guest", "postgres:postgres", "postgres:mysecretpassword",
		"myuser:mypassword", "foo:bar", "a:b", "USER:PASSWORD", "<user>:<password>", "{user}:{password}", "${USER}:${PASSWORD}", "$USER:$PASSWORD", "%USER%:%PASSWORD%", "%s:%s",
		"{{user}}:{{password}}", "user:****", "user:xxxxxx", "user:REDACTED", "user:changeme", "user:secret", "user:s3cr3t", "user:P%40ssw0rd", "user:YOUR_PASSWORD", "your-user:your-password-here",
		"x-access-token:${GITHUB_TOKEN}", "oauth2:$TOKEN", "token:x-oauth-basic", "user:...", "name:example", "test:test123", "scott:tiger", "db_user:db_password", "user:1234", "git", "user", "john.doe",
		"user:$(cat file)", "user:#{password}", "[user]:[password]", "user:%(password)s", ":password", "default:", "user:password123", "john:hunter2",
	} {
		for _, host := range []string{"example.com", "localhost:5432/db", "db:5432/app", "host:port/name", "cluster0.abcde.mongodb.net/test"} {
			lines = append(lines, "postgres://"+info+"@"+host)
		}
	}
	for _, password := range []string{"hunter42", "opensesame", "wintermute", "Zx81!", "correcthorse"} {
		for _, host := range []string{"localhost", "127.0.0.1:80", "example.com", "www.example.org/a", "host.docker.internal", "db.example.test", "[::1]:5432", "myhost", "your-domain.com"} {
			lines = append(lines, "http://alice:"+password+"@"+host)
		}
	}
	lines = append(lines, "https://medium.com/@user/a-title-1a2b3c", "https://unpkg.com/react@18.2.0/index.js", "http://localhost:8080/path@x", "http://example.com:8080?mail=a@b.com",
		"docker://nginx:alpine@sha256:0123456789abcdef", "oci://registry.corp.net:5000/a/b@sha256:0123456789abcdef", "ssh://git@github.com/a/b.git", "https://corp.net/a:b@c", "git+ssh://git@host/a",
		"https://0123456789abcdef0123456789abcdef@o1.ingest.sentry.io/7", "mailto:a@b.com http://a.net", "https://example.com/#a:b@c", "a://b:c d@e", "://:@", "x://", "https://a:@b")
	changed := 0
	for _, line := range lines {
		for _, format := range texts {
			text := fmt.Sprintf(format, line)
			if clean, found := s.Redact(text); clean != text {
				t.Logf("%q became %q, %v", text, clean, found)
				changed++
			}
		}
	}
	if len(lines) < 200 || changed*100 > len(lines)*len(texts) {
		t.Errorf("%d of %d are changed", changed, len(lines)*len(texts))
	}
}
