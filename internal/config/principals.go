package config

import (
	"errors"
	"regexp"
	"slices"
	"strings"

	"golang.org/x/net/publicsuffix"

	"github.com/wasmgate/wasmgate/internal/config/decode"
)

// A Principal may be named as the caller.
type Principal struct {
	Tenant string   // empty where there is none
	ID     string   `key:"*"`
	Roles  []string `key:"roles role"`
	// Groups are those whose tools it is offered; nil offers all.
	Groups []string `key:"groups offered"`
	// Identities are the principal's own addresses, accounts and folders, and domains as
	// @example.com.
	Identities []string `key:"identities identity"`
}

var (
	principalPattern = regexp.MustCompile(`^([A-Za-z0-9]([A-Za-z0-9._@+-]|%[0-9A-F]{2})*/)?([A-Za-z0-9]|%[0-9A-F]{2})([A-Za-z0-9._@+-]|%[0-9A-F]{2})*$`)
	rolePattern      = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$`)
)

// Named implements [decode.Named].
func (p *Principal) Named(f decode.Field) {
	p.Tenant, p.ID = SplitPrincipal(f.Key)
	if !principalPattern.MatchString(f.Key) || len(p.ID) > maxPrincipal || len(p.Tenant) > maxPrincipal {
		f.At.Fail("a principal is named by %s", idHelp)
	}
}

// identity refuses a value that does not belong to one person or organization, such as a domain under
// which anyone can get an address.
func identity(s string) error {
	domain, whole := strings.CutPrefix(s, "@")
	switch {
	case strings.TrimSpace(s) != s || len(s) < 2:
		return errors.New("is neither an email address, an account, a folder nor a @domain")
	case whole && !domainPattern.MatchString(domain):
		return errors.New("is not a domain, such as @example.com")
	case whole && shared(strings.ToLower(domain)):
		return errors.New("is a domain in which anyone can get an address: write the addresses that are yours")
	}
	return nil
}

// shared reports whether a domain belongs to a mail provider, or is a suffix under which others
// register domains.
func shared(domain string) bool {
	suffix, _ := publicsuffix.PublicSuffix(domain)
	return suffix == domain || slices.Contains(mailProviders, domain)
}

// mailProviders are those with which people have most of their addresses.
var mailProviders = strings.Fields(`
	gmail.com googlemail.com outlook.com hotmail.com hotmail.co.uk hotmail.fr hotmail.de live.com msn.com yahoo.com yahoo.co.uk yahoo.co.jp yahoo.fr yahoo.de
	ymail.com aol.com icloud.com me.com mac.com proton.me protonmail.com pm.me gmx.com gmx.net gmx.de gmx.at gmx.ch web.de t-online.de freenet.de mail.com
	email.com mail.ru bk.ru list.ru inbox.ru yandex.ru yandex.com ya.ru rambler.ru qq.com foxmail.com 163.com 126.com yeah.net sina.com naver.com daum.net
	hanmail.net zoho.com fastmail.com fastmail.fm hey.com tutanota.com tuta.com tuta.io mailbox.org posteo.de posteo.net hushmail.com laposte.net orange.fr
	free.fr sfr.fr wanadoo.fr libero.it virgilio.it tiscali.it bol.com.br uol.com.br terra.com.br rediffmail.com comcast.net verizon.net att.net sbcglobal.net
	cox.net charter.net bellsouth.net btinternet.com sky.com virginmedia.com bigpond.com optusnet.com.au shaw.ca rogers.com sympatico.ca seznam.cz wp.pl o2.pl
	interia.pl onet.pl ukr.net abv.bg mailinator.com guerrillamail.com 10minutemail.com users.noreply.github.com`)

var domainPattern = regexp.MustCompile(`^([A-Za-z0-9]([A-Za-z0-9-]*[A-Za-z0-9])?\.)+[A-Za-z]{2,}$`)
