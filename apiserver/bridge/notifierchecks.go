// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package bridge

import (
	"fmt"
	"net/netip"
	"net/url"
	"regexp"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/internal/publicaddr"
)

// The limits of the Notifier resource, except that a name is shorter, so that it fits in lists.
const (
	maxNotifierName = 63
	maxAddress      = 2048
	maxRecipients   = 10
	maxRecipient    = 254
)

// recipient matches the same email addresses as the resource's schema.
var recipient = regexp.MustCompile("^[A-Za-z0-9.!#$%&'*+/=?^_`{|}~-]+@[A-Za-z0-9-]+([.][A-Za-z0-9-]+)*$")

func checkNotifierName(name string) field.ErrorList {
	path := field.NewPath("name")
	switch {
	case name == "":
		return field.ErrorList{field.Required(path, "is missing")}
	case len(name) > maxNotifierName:
		return field.ErrorList{field.Forbidden(path, fmt.Sprintf("has %d characters and may have at most %d", len(name), maxNotifierName))}
	case len(validation.IsDNS1123Label(name)) > 0:
		return field.ErrorList{field.Forbidden(path, "must consist of lower-case letters, digits and hyphens, and begin and end with a letter or a digit")}
	default:
		return nil
	}
}

// validate returns the problems with a notifier's content, with their paths in REST. A stored notifier of format slack
// keeps its address if the content has none.
func (c *NotifierContent) validate(stored bool) field.ErrorList {
	var errs field.ErrorList
	if len(c.Events) == 0 {
		errs = append(errs, field.Required(field.NewPath("events"), "must have at least 1 item"))
	}
	for i, event := range c.Events {
		if slices.Index(c.Events, event) < i {
			errs = append(errs, field.Forbidden(field.NewPath("events").Index(i), "is listed twice"))
		}
	}
	address, to := field.NewPath("url"), field.NewPath("email_to")
	if c.Format == v1alpha1.FormatEmail {
		if c.URL != "" {
			errs = append(errs, field.Forbidden(address, "has no effect for format email; name the recipients in email_to"))
		}
		return append(errs, checkRecipients(to, c.To)...)
	}
	if len(c.To) > 0 {
		errs = append(errs, field.Forbidden(to, "is only for format email"))
	}
	if c.URL == "" && stored && c.Format == v1alpha1.FormatSlack {
		return errs
	}
	if problem := addressProblem(c.URL); problem != "" {
		errs = append(errs, field.Forbidden(address, problem))
	}
	return errs
}

// addressProblem returns the problem with a receiver's address, or "". The manager checks the resolved address.
func addressProblem(address string) string {
	u, err := url.Parse(address)
	switch {
	case address == "":
		return "is missing"
	case len(address) > maxAddress:
		return fmt.Sprintf("has %d bytes and may have at most %d", len(address), maxAddress)
	case err != nil || u.Host == "" || strings.ContainsFunc(address, func(r rune) bool { return r <= ' ' || r == 0x7f }):
		return "is not a URL such as https://hooks.example.com/herald"
	case u.Scheme != "https":
		return "must start with https://"
	case u.User != nil:
		return "must not contain a user or a password"
	}
	host := u.Hostname()
	if ip, err := netip.ParseAddr(host); err == nil && publicaddr.Check(ip) != nil || host == "localhost" {
		return "must resolve to a public address; Herald does not send to private networks"
	}
	return ""
}

func checkRecipients(path *field.Path, to []string) (errs field.ErrorList) {
	switch {
	case len(to) == 0:
		return field.ErrorList{field.Required(path, "must have at least 1 item")}
	case len(to) > maxRecipients:
		return field.ErrorList{field.Forbidden(path, fmt.Sprintf("has %d items and may have at most %d", len(to), maxRecipients))}
	}
	for i, one := range to {
		switch {
		case len(one) > maxRecipient || !recipient.MatchString(one):
			errs = append(errs, field.Forbidden(path.Index(i), "is not an email address such as social@example.com"))
		case slices.Index(to, one) < i:
			errs = append(errs, field.Forbidden(path.Index(i), "is listed twice"))
		}
	}
	return errs
}
